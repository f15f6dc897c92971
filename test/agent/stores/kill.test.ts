import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { bundle } from '../../helpers/bundle.js'
import { isBoundary, logOf } from './kill-plan.js'
import { openStore, readAll, seededRandom, temporaryFolder } from './store-files.js'

const KILLS = Number(process.env['RUNWRIGHT_KILLS'] ?? 50)

/** What a child said before it died. */
interface Acknowledged {
  /** Records by run. */
  readonly records: Map<string, number>
  /** Runs whose deletion was asked for, and those of them whose deletion was acknowledged. */
  readonly doomed: Set<string>
  readonly deleted: Set<string>
}

type Child = ChildProcessByStdio<Writable, Readable, null>

/** Lets a child run until it has said so many lines, and kills it. */
async function runAndKill(child: Child, lines: number, acknowledged: Acknowledged): Promise<void> {
  const exited = once(child, 'exit')
  child.stdin.write('go\n')
  let heard = 0
  for await (const line of createInterface({ input: child.stdout })) {
    const [sign, runId = '', seq] = line.split(' ')
    if (sign === '+') acknowledged.records.set(runId, Number(seq))
    if (sign === '?') acknowledged.doomed.add(runId)
    if (sign === '-') acknowledged.deleted.add(runId)
    heard += 1
    if (heard === lines) child.kill('SIGKILL')
  }
  const [code, signal] = (await exited) as [number | null, string | null]
  assert.deepEqual({ code, signal }, { code: null, signal: 'SIGKILL' })
}

test(`after ${KILLS} kills no acknowledged record is lost, doubled or apart from its append`, async (t) => {
  const folder = temporaryFolder(t)
  const directory = join(folder, 'data')
  const script = bundle(new URL('kill-child.ts', import.meta.url), folder)
  const random = seededRandom(KILLS)
  const acknowledged: Acknowledged = { records: new Map(), doomed: new Set(), deleted: new Set() }
  // The next one starts up, which takes the most time, while the last one is looked into.
  const start = (generation: number): Child => {
    const workers = 1 + Math.floor(random() * 24)
    const words = [script, directory, String(workers), String(generation)]
    return spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] })
  }
  let next = start(0)
  t.after(() => void next.kill('SIGKILL'))
  for (let kill = 0; kill < KILLS; kill++) {
    const child = next
    next = start(kill + 1)
    await runAndKill(child, 1 + Math.floor(random() ** 2 * 300), acknowledged)
    if (kill % 5 === 4) rmSync(join(directory, 'checkpoint'), { force: true })
    const store = await openStore(directory, { segmentBytes: 32 << 10 })
    assert.deepEqual(store.quarantined, [])
    const { heads } = await store.list({ limit: 100_000 })
    const found = new Map(heads.map(({ details }) => [details.run_id, details.last_seq]))
    for (const [runId, count] of acknowledged.records) {
      if (acknowledged.deleted.has(runId)) {
        assert.equal(found.get(runId), undefined, `${runId} was deleted and is back`)
        acknowledged.records.delete(runId)
      } else if (found.has(runId) || !acknowledged.doomed.has(runId)) {
        assert.ok((found.get(runId) ?? 0) >= count, `${runId} has lost acknowledged records`)
      }
    }
    for (const [runId, count] of found) {
      assert.ok(isBoundary(runId, count), `${runId} has a part of an append: ${count} records`)
      assert.deepEqual(await readAll(store, runId), logOf(runId).slice(0, count))
    }
    await store.close()
  }
  assert.ok(acknowledged.deleted.size > 0, 'no run was deleted: the test tests less than it should')
})
