import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { bundle } from '../../helpers/bundle.js'
import { Random } from '../../helpers/random.js'
import { isBoundary, logOf } from './kill-plan.js'
import { INDEX_FILE, openStore, readAll, temporaryFolder } from './store-files.js'

const KILLS = Number(process.env['RUNWRIGHT_KILLS'] ?? 50)

/** What the children printed before they were killed. */
interface Acknowledged {
  /** Number of records by run. */
  readonly records: Map<string, number>
  /** Runs whose deletion was requested. */
  readonly doomed: Set<string>
  /** Runs whose deletion was acknowledged. */
  readonly deleted: Set<string>
}

type Child = ChildProcessByStdio<Writable, Readable, null>

/** Kills a child once it has printed `lines` lines. */
async function runAndKill(child: Child, lines: number, acknowledged: Acknowledged): Promise<void> {
  const exited = once(child, 'exit')
  child.stdin.write('go\n')
  let printed = 0
  for await (const line of createInterface({ input: child.stdout })) {
    const [sign, runId = '', seq] = line.split(' ')
    if (sign === '+') acknowledged.records.set(runId, Number(seq))
    if (sign === '?') acknowledged.doomed.add(runId)
    if (sign === '-') acknowledged.deleted.add(runId)
    printed += 1
    if (printed === lines) child.kill('SIGKILL')
  }
  const [code, signal] = (await exited) as [number | null, string | null]
  assert.deepEqual({ code, signal }, { code: null, signal: 'SIGKILL' })
}

test('after many kills every acknowledged append is stored once and as a whole', async (t) => {
  t.diagnostic(`${KILLS} kills`)
  const folder = temporaryFolder(t)
  const directory = join(folder, 'data')
  const script = bundle(new URL('kill-child.ts', import.meta.url), folder)
  const random = new Random(KILLS)
  const acknowledged: Acknowledged = { records: new Map(), doomed: new Set(), deleted: new Set() }
  // Starting takes the most time: the next child starts while the store of the last is checked.
  const start = (generation: number): Child => {
    const args = [script, directory, String(random.integer(1, 24)), String(generation)]
    return spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  }
  let next = start(0)
  t.after(() => void next.kill('SIGKILL'))
  for (let kill = 0; kill < KILLS; kill++) {
    const child = next
    next = start(kill + 1)
    await runAndKill(child, 1 + Math.floor(random.next() ** 2 * 300), acknowledged)
    if (kill % 5 === 4) rmSync(join(directory, INDEX_FILE), { force: true })
    const store = await openStore(directory, { segmentBytes: 32 << 10 })
    assert.deepEqual(store.quarantined, [])
    const { heads } = await store.list({ limit: 100_000 })
    const found = new Map(heads.map(({ details }) => [details.run_id, details.last_seq]))
    for (const [runId, count] of acknowledged.records) {
      if (acknowledged.deleted.has(runId)) {
        assert.equal(found.get(runId), undefined, `${runId} was deleted and has reappeared`)
        acknowledged.records.delete(runId)
      } else if (found.has(runId) || !acknowledged.doomed.has(runId)) {
        assert.ok((found.get(runId) ?? 0) >= count, `${runId} has lost acknowledged records`)
      }
    }
    for (const [runId, count] of found) {
      assert.ok(isBoundary(runId, count), `${runId} has part of an append: ${count} records`)
      assert.deepEqual(await readAll(store, runId), logOf(runId).slice(0, count))
    }
    await store.close()
  }
  assert.ok(acknowledged.deleted.size > 0, 'no deletion was tested')
})
