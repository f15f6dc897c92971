/**
 * Plays the cases of the seeds from the first argument to the second one, in steps of the third,
 * and prints those that fail: seed and error.
 */
import { playCase } from './disk-case.js'
import { playLoad } from './disk-load.js'

const [from = 1, to = 1, step = 1] = process.argv.slice(2).map(Number)
for (let seed = from; seed <= to; seed += step) {
  try {
    await playCase(seed)
    if (seed % 100 === 1) await playLoad(seed)
  } catch (error) {
    console.log(`RUNWRIGHT_DISK_SEED=${seed}: ${(error as Error).stack}`)
  }
}
