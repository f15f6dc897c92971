/**
 * Waits for a word on standard input, then appends to many runs at once until it is killed, and says on standard output what was
 * acknowledged, one line for each: `+ run seq` for an append up to seq, `- run` for a deletion, and
 * before each deletion is asked for `? run`. See kill.test.ts.
 */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { batchAt, RUN_LENGTH } from './kill-plan.js'

const [, , directory = '', workers = '8', generation = '0'] = process.argv
await once(process.stdin, 'data')
const store = new FileStore({ directory, segmentBytes: 32 << 10 })
await store.open()

const say = (line: string): void => void writeSync(1, `${line}\n`)
const { heads } = await store.list({ limit: 100_000 })
const open = heads.filter(({ details }) => details.last_seq < RUN_LENGTH)
const ended = heads.flatMap(({ details }) =>
  details.last_seq >= RUN_LENGTH ? [details.run_id] : [],
)
let created = 0

/** Goes on with runs that are there, then with new ones, and deletes some that have ended. */
async function work(): Promise<never> {
  for (;;) {
    const head = open.pop()
    const runId = head?.details.run_id ?? `run-${generation}-${created++}`
    let seq = head?.details.last_seq ?? 0
    while (seq < RUN_LENGTH) {
      const batch = batchAt(runId, seq + 1)
      await store.append(runId, batch)
      seq += batch.length
      say(`+ ${runId} ${seq}`)
    }
    ended.push(runId)
    if (ended.length > 12) {
      const old = ended.shift() as string
      say(`? ${old}`)
      await store.delete(old)
      say(`- ${old}`)
    }
  }
}

say('ready')
await Promise.all(Array.from({ length: Number(workers) }, work))
