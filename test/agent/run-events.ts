import assert from 'node:assert/strict'
import type { AgentEvent } from 'runwright/agent'
import type { Said } from '../helpers/engine.js'

export const write = (path: string, content: string): Said => ({
  calls: [{ tool: 'write_file', args: { path, content } }],
})
export const kinds = (events: readonly AgentEvent[]): string[] =>
  events.map((event) =>
    event.kind === 'step_start' ? `step_start ${event.payload.node}` : event.kind,
  )
export const last = (
  events: readonly AgentEvent[],
): Extract<AgentEvent, { kind: 'run_end' }>['payload'] => {
  const end = events.at(-1)
  assert.ok(end?.kind === 'run_end')
  return end.payload
}
