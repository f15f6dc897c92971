import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Collects all garbage; what it held outside of the heap is freed some turns later. */
export async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
}
