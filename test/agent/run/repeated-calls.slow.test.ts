/** Calls that begin again after their process has died count once. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, RunEngine, type ModelProvider, type RunDetails } from 'runwright/agent'
import { follow, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { mortalClock, MortalProcess } from '../../helpers/mortal-process.js'

/** A run whose process dies at an append; how it ends, and how often that was. */
async function survivors(
  t: TestContext,
  provider: () => ModelProvider,
  request: Readonly<Record<string, number>>,
): Promise<readonly RunDetails[]> {
  const ends: RunDetails[] = []
  for (const keepsLast of [true, false]) {
    for (let dieAt = 2; ; dieAt++) {
      const disk = new MemoryStore()
      await disk.open()
      const cwd = scratch(t)
      const mortal = MortalProcess.ofAppends(t, disk, dieAt, keepsLast)
      const options = { roots: [cwd], sealedChecks: 'off' as const, defaultModel: 'test:m' }
      const first = await RunEngine.open({
        ...options, store: mortal.store, clock: mortalClock(mortal.died), providers: [provider()],
      })
      const { details } = await first.create({ goal: 'shell: test -f done', ...request })
      await Promise.race([mortal.died, follow(first, details.run_id)])
      if (!mortal.isDead) {
        await first.close()
        break
      }
      const second = await RunEngine.open({ ...options, store: disk, providers: [provider()] })
      await follow(second, details.run_id)
      ends.push(await second.get(details.run_id))
      await second.close()
    }
  }
  return ends
}

/** Looks, writes, and is done: two calls, however often its process dies. */
function worker(): ModelProvider {
  return testProvider(({ messages }): Said => {
    const turns = messages.filter(({ role }) => role === 'assistant').length
    const look = { tool: 'list_files', args: { path: '.' }, call_id: 'look' }
    if (turns === 0) return { calls: [look] }
    if (turns > 1) return { text: 'done' }
    const args = { path: 'done', content: '' }
    return { calls: [{ tool: 'write_file', args, call_id: 'write' }] }
  })
}

test('a run that may make two calls makes them, wherever its process dies', async (t) => {
  const ends = await survivors(t, worker, { max_tool_calls: 2 })
  assert.ok(ends.length > 10, `${ends.length} deaths`)
  for (const { status, usage, final_state } of ends) {
    assert.equal(status, 'achieved', final_state.goal_reason)
    assert.equal(usage.tool_calls, 2)
  }
})
