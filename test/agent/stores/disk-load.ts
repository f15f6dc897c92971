import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { Random } from '../../helpers/random.js'
import { Violation } from './disk-model.js'
import { smallRecord } from './disk-records.js'
import { DIRECTORY, ROOT, turn } from './disk-session.js'
import { SimulatedDisk, SimulatedProcess } from './simulated-disk.js'

/** What the journal may need besides three times what is retained, in segments. */
const SPARE_SEGMENTS = 8
/** Runs that are created, one in each turn of the event loop. */
const RUNS = 400
const KEPT_RUNS = 12
/** Calls without an answer. */
const MAX_WAITING = 12

/**
 * Runs come and go without a pause, so the journal never is idle; its files must nevertheless stay
 * below three times what is retained. @throws Violation
 */
export async function playLoad(seed: number): Promise<void> {
  const random = new Random(seed)
  const disk = new SimulatedDisk(ROOT)
  const segmentBytes = random.pick([4096, 16_384])
  const store = new FileStore(
    { directory: DIRECTORY, segmentBytes },
    new SimulatedProcess(disk, new Random(seed), () => null),
  )
  await store.open()
  /** Sizes of the runs that are not deleted yet, oldest first. */
  const kept: { readonly id: string; readonly size: number }[] = []
  const calls: Promise<void>[] = []
  let retained = 0
  let answered = 0
  const call = (answer: Promise<void>): void => {
    calls.push(answer.then(() => void (answered += 1)))
  }
  for (let i = 0; i < RUNS; i++) {
    const id = `run-${i}`
    const batch = [1, 2, 3].map((seq) => smallRecord(id, seq, seq, random.integer(0, 1500)))
    batch.push(smallRecord(id, 4, 4, null))
    const size = JSON.stringify(batch).length
    call(store.append(id, batch))
    kept.push({ id, size })
    retained += size
    if (kept.length > KEPT_RUNS) {
      const oldest = kept.shift()
      call(store.delete(oldest?.id ?? ''))
      retained -= oldest?.size ?? 0
    }
    // The disk is slower than the calls come, up to a bound.
    do await turn()
    while (calls.length - answered > MAX_WAITING)
    const bytes = disk.bytesOf(/journal/)
    const bound = 3 * retained + SPARE_SEGMENTS * segmentBytes
    if (bytes <= bound) continue
    throw new Violation(`the journal has ${bytes} bytes, of which ${retained} are retained`)
  }
  await Promise.all(calls)
  await store.close()
}
