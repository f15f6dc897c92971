/** Held-out tests in PostgreSQL: deleted with their runs, and evaluated by whichever process. */
import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { PostgresStore, RunEngine } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { noPostgres, openDatabase } from './postgres.js'
import { openStore } from './stores.js'

const BUNDLE = new URL('../../fixtures/versions/agent-1.mjs', import.meta.url).href
const MARKER = 'Lb6HeldOutMarker'

const { pool } = await openDatabase()

describe('held-out tests in PostgreSQL', { skip: noPostgres }, () => {
  test('a run passes them, and no table holds their text', async (t) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-held-')))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'code'), '')
    const store = new PostgresStore({ pool, schema: 'whole' })
    const workspaceFolder = mkdtempSync(join(tmpdir(), 'runwright-held-copies-'))
    t.after(() => rmSync(workspaceFolder, { recursive: true, force: true }))
    const engine = await RunEngine.open({
      store, roots: [folder], workspaceFolder,
      providers: [repairModel()], defaultModel: 'builtin:repair',
    })
    t.after(() => engine.close())
    const files = { [`${MARKER}.sh`]: `test -f code # ${MARKER}` }
    const holdout = { files, command: `sh ${MARKER}.sh` }
    const { details } = await engine.create({ goal: 'shell: test -f code', holdout })
    for await (const _ of await engine.subscribe(details.run_id)) continue
    const ended = await engine.get(details.run_id)
    assert.deepEqual([ended.status, ended.assurance?.holdout], ['achieved', true])
    assert.ok((await store.holdouts.get(details.run_id))!.length > 0)
    const { rows: tables } = await pool.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'whole'`,
    )
    assert.ok(tables.some(({ name }) => name === 'holdouts'))
    for (const { name } of tables) {
      const { rows } = await pool.query(`SELECT t::text AS text FROM whole."${name}" t`)
      for (const { text } of rows as { text: string }[]) {
        assert.equal(text.includes(MARKER), false, name)
        assert.equal(text.includes(Buffer.from(MARKER).toString('hex')), false, name)
      }
    }
    await engine.delete(details.run_id)
    assert.equal(await store.holdouts.get(details.run_id), null)
  })

  test('retention removes those of its runs, and those of runs that were never created', async (t) => {
    const store = await openStore(t, { pool, schema: 'kept' })
    for (const runId of ['old', 'new', 'none', 'fresh'])
      await store.holdouts.put(runId, Buffer.from(runId))
    await store.append('old', sampleRun('old', { createdAt: 1 }))
    await store.append('new', sampleRun('new', { createdAt: 2 }))
    await pool.query(`UPDATE kept.holdouts SET created_at = now() - interval '2 hours'
      WHERE run_id <> 'fresh'`)
    await store.sweep({ runs: 1 })
    const text = 'SELECT run_id FROM kept.holdouts ORDER BY 1'
    const { rows } = await pool.query<{ run_id: string }>(text)
    assert.deepEqual(rows.map(({ run_id }) => run_id), ['fresh', 'new'])
  })

  test('tables of a version before get the new one, and keep their runs', async (t) => {
    const { PostgresStore: Earlier } = (await import(BUNDLE)) as typeof import('runwright/agent')
    const before = new Earlier({ pool, schema: 'old' })
    await before.open()
    await before.append('a', sampleRun('a'))
    await before.close()
    const store = await openStore(t, { pool, schema: 'old' })
    assert.equal((await store.head('a'))?.details.run_id, 'a')
    await store.holdouts.put('b', Buffer.from('b'))
    assert.deepEqual(Buffer.from((await store.holdouts.get('b'))!), Buffer.from('b'))
    await store.delete('a')
  })
})
