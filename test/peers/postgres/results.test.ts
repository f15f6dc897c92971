/** Runs without a folder, and their results, in a store that several processes share. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, RunEngine, type RunOwner } from 'runwright/agent'
import { follow, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { noPostgres, openDatabase } from './postgres.js'

const RUN = {
  goal: 'result: add 1 and 2',
  workspace: 'none',
  result_schema: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
}
const { pool } = await openDatabase()

describe('results in a PostgresStore', { skip: noPostgres }, () => {
  test('runs without a folder work at the same time, of any tenant, and any process shows them', async (t) => {
    let both: () => void = () => undefined
    const met = new Promise<void>((resolve) => (both = resolve))
    let working = 0
    const provider = testProvider(async (request): Promise<Said> => {
      if (request.result !== undefined)
        return { calls: [{ tool: 'give_result', args: { total: 3 } }] }
      if (++working === 2) both()
      await met
      return { text: 'It is 3.' }
    })
    const open = async (t: TestContext): Promise<RunEngine> => {
      const engine = await RunEngine.open({
        store: new PostgresStore({ pool, schema: 'results', pollMs: 50, leaseMs: 600_000 }),
        roots: [scratch(t)],
        providers: [provider],
        defaultModel: 'test:m',
        cwdPolicy: 'reject',
      })
      t.after(() => engine.close())
      return engine
    }
    const [one, other] = [await open(t), await open(t)]
    const owners: readonly RunOwner[] = [{ id: 'a', tenant: 'A' }, { id: 'b', tenant: 'B' }]
    for (const owner of owners) await one.create(RUN, { caller: { owner } })
    for (const owner of owners) {
      const { runs } = await other.list({ tenant: owner.tenant })
      assert.equal(runs.length, 1)
      const runId = runs[0]!.run_id
      await follow(other, runId)
      const details = await other.get(runId, { owner })
      assert.equal(details.status, 'achieved', details.final_state.goal_reason)
      assert.deepEqual(details.result, { total: 3 })
      assert.deepEqual(details.result_schema, RUN.result_schema)
      assert.equal(details.answer, 'It is 3.')
      assert.equal(details.cwd, '')
    }
  })
})
