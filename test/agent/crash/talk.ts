/**
 * A conversation with a fork, as a program would hold it that may die at any time and then does
 * everything again with the same keys.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunEngine } from '../../../lib/agent/engine.js'
import type { AgentEvent } from '../../../lib/agent/events.js'
import type { Message, ModelRequest } from '../../../lib/agent/model.js'
import { NO_USAGE } from '../../../lib/agent/usage.js'
import type { ModelProvider } from '../../../lib/agent/model-provider.js'

/** The plan of one child. */
export interface TalkPlan {
  readonly directory: string
  readonly root: string
  readonly source: string
  /** A message to pending changes, or another way from the start in a copy of its own. */
  readonly at: 'end' | 'start'
  /** Is the source deleted once it was forked? */
  readonly deletes: boolean
}

/** Met by the source, not met after the first iteration of its fork, met after the second. */
export const TALK_GOAL = 'shell: test -f n && ! test -f blocked'

/** What the checkpoints of the source hold. */
export const TALK_FILES = {
  start: { a: 'a\n', changed: 'old\n' },
  end: { a: 'a\n', changed: 'new\n', n: 'n\n' },
} as const

const write = (path: string, content: string) => ({ tool: 'write_file', args: { path, content } })
const bash = (command: string) => ({ tool: 'bash', args: { command } })

/** Fails, and with it the run, when a fork gets other files, or messages where none may be. */
export function talkProvider(at: TalkPlan['at'] | null): ModelProvider {
  const callsFor = ({ messages, run }: ModelRequest) => {
    assert.deepEqual(partedCalls(messages), [])
    if (at !== null && run.iteration === 1 && run.turn === 0)
      assert.deepEqual(filesIn(run.cwd), TALK_FILES[at])
    if (run.turn > 0) return []
    if (at === null) return [write('changed', 'new\n'), write('n', 'n\n')]
    return run.iteration === 1
      ? [write('n', 'fork\n'), bash('touch blocked')]
      : [bash('rm -f blocked')]
  }
  return {
    id: 'talk',
    description: 'a script',
    isLanguageModel: false,
    suggestions: [],
    create: () => ({
      name: 'talk:m',
      isLanguageModel: false,
      contextWindow: null,
      prices: null,
      complete: async (request) => {
        const calls = callsFor(request).map((call, i) => ({
          ...call,
          call_id: `${at}-${request.run.iteration}-${i}`,
        }))
        return {
          message: { role: 'assistant', text: '', calls },
          reasoning: '',
          usage: NO_USAGE,
          stop: calls.length > 0 ? 'tool_calls' : 'end',
        }
      },
    }),
  }
}

/** Calls that are not followed by their results at once. */
export function partedCalls(messages: readonly Message[]): string[] {
  return messages.flatMap((message, at) =>
    message.role !== 'assistant'
      ? []
      : message.calls
          .filter(({ call_id }, i) => {
            const result = messages[at + 1 + i]
            return result?.role !== 'tool' || result.call_id !== call_id
          })
          .map(({ call_id }) => call_id),
  )
}

/** What others did in the copy after its run: no file of any checkpoint. */
export function disturb(copy: string): void {
  writeFileSync(join(copy, 'junk'), 'junk')
  writeFileSync(join(copy, 'changed'), 'by others')
}

/** The files of a folder, but those that a write which was cut off has left. */
export function filesIn(folder: string): Record<string, string> {
  const all = existsSync(folder) ? readdirSync(folder).sort() : []
  const names = all.filter((name) => !name.startsWith('.runwright-'))
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

/**
 * Forks the source and talks to the fork until it has ended; `told` gets what was answered, as
 * lines that are the same whenever this is done again.
 */
export async function talk(
  engine: RunEngine,
  { source, at, deletes }: Pick<TalkPlan, 'source' | 'at' | 'deletes'>,
  told: (line: string) => void,
): Promise<string> {
  const request = {
    at, message: 'forked', workspace: 'isolated', hitl_enabled: true, max_iterations: 3,
  }
  const { details } = await engine.fork(source, request, { idempotencyKey: 'fork' })
  const fork = details.run_id
  told(`fork ${fork}`)
  const sent = new Set<string>()
  const send = async (text: string, deliver = 'next_turn'): Promise<void> => {
    if (sent.has(text)) return
    sent.add(text)
    try {
      const key = { idempotencyKey: text }
      const { message_id } = await engine.message(fork, { text, deliver }, key)
      told(`message ${message_id} ${text}`)
    } catch (error) {
      if ((error as { readonly problem?: string }).problem !== 'ended') throw error
    }
  }
  await send('while pending')
  if (deletes) await engine.delete(source).catch(() => undefined)
  for await (const batch of await engine.subscribe(fork)) {
    for (const { json } of batch) {
      const event = JSON.parse(json) as AgentEvent
      const { iteration } = event
      if (event.kind === 'tool_started') {
        await send(`beside a call of ${iteration}`)
        await send(`later than ${iteration}`, 'next_iteration')
      }
      if (event.kind !== 'human_check_required') continue
      await send(`at the gate of ${iteration}`)
      const { gate_id } = event.payload
      await engine.resume(fork, { decision: 'approve', gate_id }).catch(() => undefined)
    }
  }
  return fork
}
