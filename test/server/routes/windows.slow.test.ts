/** What Windows cannot do is refused there, and nothing else; the system is only claimed to be it. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { openService } from '../open-service.js'

/** From now on the process says that it runs on Windows, until the test ends. */
function claimWindows(t: TestContext): void {
  const own = Object.getOwnPropertyDescriptor(process, 'platform')!
  t.after(() => Object.defineProperty(process, 'platform', own))
  Object.defineProperty(process, 'platform', { ...own, value: 'win32' })
}

test('on Windows, routes of the files of a run answer that they are not supported', async (t) => {
  const provider = testProvider((_, n) =>
    n === 0
      ? { calls: [{ tool: 'write_file', args: { path: 'a', content: 'new\n' } }] }
      : { text: 'done' },
  )
  const { engine, cwd } = await openEngine(t, { providers: [provider], checkpoints: 'auto' })
  writeFileSync(join(cwd, 'a'), 'old\n')
  const { details } = await runToEnd(engine, { goal: 'shell: grep -q new a', cwd })
  const run = `/api/runs/${details.run_id}`
  const checkpoint_id = details.checkpoint_id ?? ''
  const opened = await openService({ engine })
  t.after(() => opened[Symbol.asyncDispose]())
  claimWindows(t)
  const patch = { headers: { accept: 'text/x-diff' } }
  const requests = [
    ['GET', '/changes', {}],
    ['GET', '/changes', patch],
    ['GET', '/files', {}],
    ['GET', '/files/a', {}],
    ['POST', '/restore', { body: { checkpoint_id, force: true } }],
    ['POST', '/apply', { body: {} }],
    ['POST', '/discard', {}],
  ] as const
  for (const [method, path, options] of requests) {
    const answer = await opened.call(method, `${run}${path}`, options)
    const { code } = answer.json as { readonly code?: unknown }
    assert.deepEqual([answer.status, code], [501, 'unsupported'], `${method} ${path}`)
  }
  assert.equal(readFileSync(join(cwd, 'a'), 'utf8'), 'new\n')
  const isolated = { goal: 'shell: true', cwd, workspace: 'isolated' }
  const refused = await opened.call('POST', '/api/runs', { body: isolated })
  assert.equal(refused.status, 422)
  assert.match(refused.text, /"\/workspace".*on Windows/)
  assert.equal((await opened.call('GET', run)).status, 200)
})
