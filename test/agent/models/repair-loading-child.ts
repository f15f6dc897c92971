/**
 * Asserts that an import of the agent does not load the repair engine, and that the first request
 * to its model does. It runs from source, where each file is a script of its own.
 */
import assert from 'node:assert/strict'
import { Session } from 'node:inspector/promises'

// The debugger reports every script that this process compiles, whatever loads it.
const debuggerSession = new Session()
debuggerSession.connect()
const scripts: string[] = []
debuggerSession.on('Debugger.scriptParsed', ({ params }) => void scripts.push(params.url))
await debuggerSession.post('Debugger.enable')
const loaded = (part: string): string[] => scripts.filter((url) => url.includes(part))

const { createModelRegistry, repairModel } = await import('runwright/agent')
const models = [repairModel(), createModelRegistry().resolve('builtin:repair')]
assert.ok(loaded('/lib/agent/models/registry.').length > 0, 'the debugger reports no scripts')
assert.deepEqual(loaded('/lib/agent/models/repair/'), [])

for (const model of models) {
  const { message } = await model.complete({
    system: '',
    messages: [{ role: 'user', text: 'make npm test pass' }],
    tools: [],
    signal: new AbortController().signal,
    run: { run_id: 'run', iteration: 1, turn: 0, goal: 'test', check: null, cwd: '/' },
  })
  assert.equal(message.role, 'assistant')
}
assert.ok(loaded('/lib/agent/models/repair/search.').length > 0)
debuggerSession.disconnect()
