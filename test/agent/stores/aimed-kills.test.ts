import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { bundle } from '../../helpers/bundle.js'
import { isBoundary, logOf } from './kill-plan.js'
import { openStore, readAll, temporaryFolder } from './store-files.js'

/** What a process was told before it died: the last sequence number of each run; 0 if deleted. */
function acknowledged(output: string): Map<string, { seq: number; isDeleting: boolean }> {
  const runs = new Map<string, { seq: number; isDeleting: boolean }>()
  for (const line of output.split('\n')) {
    const [sign, runId = '', seq] = line.split(' ')
    const run = runs.get(runId) ?? { seq: 0, isDeleting: false }
    if (sign === '+') runs.set(runId, { ...run, seq: Number(seq) })
    if (sign === '?') runs.set(runId, { ...run, isDeleting: true })
    if (sign === '-') runs.delete(runId)
  }
  return runs
}

/** File operations that rotation, index files and reclaiming consist of; see aimed-kill-child.ts. */
const OPERATIONS = ['create', 'sync', 'sync directory', 'write', 'rename', 'remove', 'tail']
/** The operation at which the process dies: of its kind, the n-th. */
const COUNTS = [1, 2, 3, 5, 8, 13]

for (const operation of OPERATIONS) {
  test(`a process killed around any ${operation} loses nothing and repeats nothing`, async (t) => {
    const folder = temporaryFolder(t, 'in memory')
    const script = bundle(new URL('aimed-kill-child.ts', import.meta.url), folder)
    for (const moment of ['before', 'after']) {
      const directory = join(folder, `${operation} ${moment}`)
      const truth = new Map<string, { seq: number; isDeleting: boolean }>()
      // Each process continues where the one before it was killed.
      for (const count of COUNTS) {
        const args = [script, directory, operation, moment, String(count)]
        const { stdout, signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
        const title = `${moment} ${operation} ${count}`
        assert.equal(signal, 'SIGKILL', `${title}: ${stderr}`)
        for (const [runId, run] of acknowledged(stdout)) truth.set(runId, run)
        for (const line of stdout.split('\n')) {
          if (line.startsWith('- ')) truth.delete(line.slice(2))
        }
        const store = await openStore(directory)
        assert.deepEqual(store.damage(), { runs: [], files: [] }, title)
        for (const [runId, { seq, isDeleting }] of truth) {
          const records = await readAll(store, runId)
          if (isDeleting && records.length === 0) continue
          assert.ok(records.length >= seq, `${title}: ${runId} has ${records.length} of ${seq}`)
          assert.deepEqual(records, logOf(runId).slice(0, records.length), title)
          assert.ok(isBoundary(runId, records.length), title)
        }
        await store.close()
      }
    }
  })
}
