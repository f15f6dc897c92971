import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { part, run } from './started-runs.js'

for (const request of [null, undefined, 5, [], 'x']) {
  test(`startRun(${JSON.stringify(request)}) says what it takes`, async (t) => {
    const { output } = await run(t, async ({ startRun }) => {
      return (await startRun(request as never)).status
    })
    assert.match(output, /^work failed: .*(must be an object|needs goal|goal is)/s)
  })
}

test('a run that a tool does not wait for ends with the call', async (t) => {
  const { cwd, output, events } = await run(t, ({ startRun }) => {
    void startRun({ goal: 'write a one', check: 'false' })
    return new Promise((resolve) => setImmediate(() => resolve('not awaited')))
  })
  assert.equal(output, 'not awaited')
  const kinds = events.map(({ kind }) => kind)
  const started = kinds.includes('delegate_started')
  assert.equal(kinds.includes('delegate_ended'), started)
  if (started) assert.ok(kinds.indexOf('delegate_ended') < kinds.indexOf('tool_result'))
  assert.ok(!existsSync(join(cwd, 'a.txt')))
})

test('without permission, no run is started', async (t) => {
  const { output } = await run(
    t,
    async ({ startRun }) => await startRun(part('a', 'one')).then(() => 'ok', String),
    {},
    {},
  )
  assert.match(output, /DelegationError: this run must not start others/)
})
