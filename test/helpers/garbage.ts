import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Collects all garbage, and waits some turns until memory outside the heap is freed too. */
export async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
}
