/**
 * Asserts that an import of the agent loads nothing of `runwright/repair`, and that its engine is
 * loaded by the first request to its model. It runs from source, where each file is a script of
 * its own.
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

const { createModelRegistry } = await import('runwright/agent')
assert.ok(loaded('/lib/agent/models/registry.').length > 0, 'the debugger reports no scripts')
assert.deepEqual(loaded('/lib/repair/'), [])

const { repairModel } = await import('runwright/repair')
const model = createModelRegistry({ providers: [repairModel()] }).resolve('builtin:repair')
assert.deepEqual(loaded('/lib/repair/search.'), [])
{
  const { message } = await model.complete({
    system: '',
    messages: [{ role: 'user', text: 'make npm test pass' }],
    tools: [],
    signal: new AbortController().signal,
    run: { run_id: 'run', iteration: 1, turn: 0, goal: 'test', check: null, cwd: '/' },
  })
  assert.equal(message.role, 'assistant')
}
assert.ok(loaded('/lib/repair/search.').length > 0)
debuggerSession.disconnect()
