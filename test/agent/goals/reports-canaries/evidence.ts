/** Reads what canaries left in the private folder, which is gone when a check is over. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { RecordingExecutor } from '../support.js'

/** Counts, for each command that `executor` runs from now on, watches that began and ended. */
export function countWatches(executor: RecordingExecutor): { begun: number; ended: number } {
  const counts = { begun: 0, ended: 0 }
  const { run } = executor
  executor.run = async (command, options) => {
    const result = await run.call(executor, command, options)
    const folder = join(options.writable[0]!, 'canaries')
    for (const name of await readdir(folder)) {
      const text = await readFile(join(folder, name), 'utf8')
      counts.begun += text.split(',"begin",').length + text.split(', "begin",').length - 2
      counts.ended += text.split(',"end",').length + text.split(', "end",').length - 2
    }
    return result
  }
  return counts
}
