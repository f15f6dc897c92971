/**
 * Waits for input, then appends to many runs concurrently until it is killed. It prints one line
 * per acknowledgement: `+ run seq` for an append up to seq, `- run` for a deletion, and `? run`
 * before it requests one. See kill.test.ts, which bundles it: only relative imports work here.
 */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { batchAt, RUN_LENGTH } from './kill-plan.js'

/** Runs that have ended and stay: the store is as large after the last kill as after the tenth. */
const KEPT = 40

const [, , directory = '', workers = '8', generation = '0'] = process.argv
await once(process.stdin, 'data')
const store = new FileStore({ directory, segmentBytes: 32 << 10 })
await store.open()

const print = (line: string): void => void writeSync(1, `${line}\n`)
const { heads } = await store.list({ limit: 100_000 })
const open = heads.filter(({ details }) => details.last_seq < RUN_LENGTH)
const ended = heads.flatMap(({ details }) =>
  details.last_seq >= RUN_LENGTH ? [details.run_id] : [],
)
let created = 0

/** Continues stored runs, then creates new ones, and deletes some that have ended. */
async function work(): Promise<never> {
  for (;;) {
    const head = open.pop()
    const runId = head?.details.run_id ?? `run-${generation}-${created++}`
    let seq = head?.details.last_seq ?? 0
    while (seq < RUN_LENGTH) {
      const batch = batchAt(runId, seq + 1)
      await store.append(runId, batch)
      seq += batch.length
      print(`+ ${runId} ${seq}`)
    }
    ended.push(runId)
    while (ended.length > KEPT) {
      const old = ended.shift() as string
      print(`? ${old}`)
      await store.delete(old)
      print(`- ${old}`)
    }
  }
}

print('ready')
await Promise.all(Array.from({ length: Number(workers) }, work))
