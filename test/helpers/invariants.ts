import assert from 'node:assert/strict'
import { foldHead, type AgentEvent, type RunHead, type RunRecord } from 'runwright/agent'

/**
 * Asserts what holds for the log of every run: seq counts without gaps, run_end is single and last,
 * each call has one result, one gate is open at a time, the status is that of the fold, totals add
 * up, iterations and time never decrease, each message is heard once and in order, or reported as
 * unheard.
 */
export function assertInvariants(
  events: readonly (AgentEvent | RunRecord)[],
  finished = true,
): void {
  let gate: string | null = null
  let iterationTokens = 0
  let totalTokens = 0
  const open = new Set<string>()
  const seen = new Set<string>()
  const waiting: string[] = []
  const sent = new Set<string>()
  const send = (id: string): void => {
    assert.ok(!sent.has(id), `message ${id} is in the log once`)
    sent.add(id)
    waiting.push(id)
  }
  let head: RunHead | null = null
  for (const [index, event] of events.entries()) {
    const before = events[index - 1]
    assert.equal(event.seq, index + 1, 'seq counts without gaps')
    assert.ok(event.ts >= (before?.ts ?? 0), 'ts never decreases')
    assert.ok(event.iteration >= (before?.iteration ?? 0), 'iteration never decreases')
    if (index === 0) assert.equal(event.kind, 'run_created')
    head = foldHead(head, { v: 1, ...event } as RunRecord)
    switch (event.kind) {
      case 'run_created':
        for (const { message_id } of event.payload.messages ?? []) send(message_id)
        break
      case 'user_message':
        send(event.payload.message_id)
        break
      case 'model_turn': {
        const { heard = [] } = event.payload
        assert.deepEqual([...open], [], 'no turn, and no message, between a call and its result')
        const due = waiting.filter((id) => heard.includes(id))
        assert.deepEqual(due, heard, 'messages are heard once, in order')
        for (const id of heard) waiting.splice(waiting.indexOf(id), 1)
        break
      }
      case 'step_start':
        if (event.payload.node === 'plan') iterationTokens = 0
        break
      case 'llm_usage': {
        const tokens = event.payload.input_tokens + event.payload.output_tokens
        iterationTokens += tokens
        totalTokens += tokens
        break
      }
      case 'attempt_ended':
      case 'delegate_ended': {
        const { usage } = event.payload
        totalTokens += usage.input_tokens + usage.output_tokens
        break
      }
      case 'tool_call':
        assert.ok(!seen.has(event.payload.call_id), `call ${event.payload.call_id} is made once`)
        seen.add(event.payload.call_id)
        open.add(event.payload.call_id)
        break
      case 'tool_result':
        assert.ok(open.delete(event.payload.call_id), `${event.payload.call_id} has one result`)
        break
      case 'iteration_complete':
        assert.equal(event.payload.iteration, event.iteration)
        assert.equal(event.payload.tokens, iterationTokens, 'tokens of the iteration add up')
        break
      case 'human_check_required':
        assert.equal(gate, null, 'one gate at a time')
        gate = event.payload.gate_id
        break
      case 'human_check_response':
        assert.equal(event.payload.gate_id, gate, 'a response closes the open gate')
        gate = null
        break
      case 'run_end':
        assert.equal(index, events.length - 1, 'run_end comes last')
        assert.equal(event.payload.total_tokens, totalTokens, 'total tokens add up')
        assert.equal(head.details.status, event.payload.status)
        assert.deepEqual(event.payload.unheard ?? [], waiting, 'what was not heard is reported')
        break
      default:
    }
  }
  if (!finished) return
  assert.equal(events.at(-1)?.kind, 'run_end', 'the log ends with run_end')
  assert.deepEqual([...open], [], 'every call has its result')
}
