/** What is removed from a shared database goes from the disks of all machines soon. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { PostgresStore, RunEngine } from 'runwright/agent'
import { blob } from '../../../lib/agent/testing/object-contract/suite.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { noPostgres, openDatabase } from './postgres.js'
import { until } from './stores.js'

const { newSchema, pool } = await openDatabase()

/** One of the machines that share a database, with copies of its own. */
interface Machine {
  readonly store: PostgresStore
  readonly engine: RunEngine
  readonly copies: string
}

interface Place {
  readonly cwd: string
  readonly schema: string
  readonly listen?: boolean
}

async function open(
  t: TestContext,
  { cwd, schema, listen = true }: Place,
  works: boolean,
): Promise<Machine> {
  const copies = scratch(t)
  const store = new PostgresStore({
    pool, schema, ...(!listen && { listen }), labels: works ? ['worker'] : [],
    labelsFor: () => ['worker'],
  })
  const engine = await RunEngine.open({
    store,
    roots: [cwd],
    workspaceFolder: copies,
    sealedChecks: 'off',
    defaultModel: 'test:m',
    providers: [
      testProvider(({ run }) => {
        const args = { path: 'work.txt', content: run.run_id.repeat(100) }
        return run.turn > 0 ? {} : { calls: [{ tool: 'write_file', args }] }
      }),
    ],
  })
  t.after(() => engine.close())
  return { store, engine, copies }
}

describe('runs that are removed from a PostgresStore', { skip: noPostgres }, () => {
  for (const listen of [true, false]) {
    const how = listen ? 'by notifications' : 'by polling only'
    test(`copies go from the disk of another process, ${how}`, async (t) => {
      const cwd = scratch(t)
      writeFileSync(join(cwd, 'a.txt'), 'a')
      const place = { cwd, schema: newSchema(), listen }
      const worker = await open(t, place, true)
      const front = await open(t, place, false)
      const run = async (): Promise<string> => {
        const goal = 'shell: test -f work.txt'
        const { details } = await front.engine.create({ goal, cwd, workspace: 'isolated' })
        await follow(front.engine, details.run_id)
        assert.ok(existsSync(join(worker.copies, details.run_id)))
        return details.run_id
      }
      const gone = (runId: string): Promise<void> =>
        until(async () => assert.ok(!existsSync(join(worker.copies, runId))))
      const [dropped, deleted, kept] = [await run(), await run(), await run()]
      await front.engine.delete(deleted)
      await gone(deleted)
      assert.ok(existsSync(join(worker.copies, dropped)))
      assert.equal(await front.store.sweep({ runs: 1 }), 1)
      await gone(dropped)
      assert.ok(existsSync(join(worker.copies, kept)))
      await worker.store.delete(kept)
      await gone(kept)
    })
  }

  test('contents of runs that retention drops go soon, if they were unused for an hour', async (t) => {
    const cwd = scratch(t)
    writeFileSync(join(cwd, 'a.txt'), 'a')
    const schema = newSchema()
    const { store, engine } = await open(t, { cwd, schema }, true)
    const run = async (): Promise<string> => {
      const goal = 'shell: test -f work.txt'
      const { details } = await engine.create({ goal, cwd, workspace: 'isolated' })
      await follow(engine, details.run_id)
      return details.run_id
    }
    const [old, late, kept] = [await run(), await run(), await run()]
    const hashOf = (runId: string): string => blob(runId.repeat(100)).hash
    await pool.query(
      `UPDATE ${schema}.objects SET used_at = now() - interval '2 hours' WHERE hash <> $1`,
      [hashOf(late)],
    )
    assert.equal(await store.sweep({ runs: 1 }), 2)
    const left = async (): Promise<readonly string[]> => {
      const { rows } = await pool.query<{ hash: string }>(`SELECT hash FROM ${schema}.objects`)
      const hashes = new Set(rows.map(({ hash }) => hash))
      return [old, late, kept].filter((runId) => hashes.has(hashOf(runId)))
    }
    await until(async () => assert.deepEqual(await left(), [late, kept]))
  })
})
