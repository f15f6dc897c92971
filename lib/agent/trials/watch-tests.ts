import { realpath } from 'node:fs/promises'
import { makeTemporaryFolder, temporaryParents } from '../../internal/temporary-folders.js'
import { inOwnPlace, onOwnFiles } from '../exhaustion.js'
import type { LineUse, TestedLines } from '../trial.js'
import { isInside } from '../workspace/paths.js'
import { removeFolder } from '../workspace/copy.js'
import { readTrace, watch, type Trace } from './trace.js'
import type { TestWatch } from './trials.js'

/** Watches the tests of a command by {@link watch}, in a private folder that is gone afterwards. */
export const testWatch: TestWatch = {
  watch: async (root, run) => {
    const what = 'what watches tests cannot be written'
    const folder = await inOwnPlace(what, async () =>
      await realpath(await makeTemporaryFolder('check', await parentOutside(root))),
    )
    try {
      const env = await inOwnPlace(what, () => watch(folder, root))
      const { exitCode } = await run({ env, writable: [folder] })
      const trace = await onOwnFiles('what tests ran cannot be read', () => readTrace(folder))
      return testedLines(trace, exitCode !== 0)
    } finally {
      await removeFolder(folder).catch(() => undefined)
    }
  },
}

/** A folder for temporary files that is not in the copy. */
async function parentOutside(root: string): Promise<string | undefined> {
  for await (const folder of temporaryParents()) if (!isInside(folder, root)) return folder
  return undefined
}

/** Counts who ran each line that failing tests ran, the most telling files first. */
function testedLines({ tests, files }: Trace, hasFailed: boolean): TestedLines | null {
  const isFailing = tests.map(({ failed }) => failed === true)
  const failed = isFailing.filter(Boolean).length
  if (failed === 0 || !hasFailed) return null
  const found: { path: string; uses: LineUse[]; best: number }[] = []
  for (const [path, lines] of files) {
    const uses: LineUse[] = []
    let best = 0
    for (const [line, ran] of [...lines].sort(([a], [b]) => a - b)) {
      const failing = ran.filter((test) => isFailing[test]).length
      if (failing === 0) continue
      uses.push({ line, failed: failing, passed: ran.length - failing })
      best = Math.max(best, failing / Math.sqrt(failed * ran.length))
    }
    if (uses.length > 0) found.push({ path, uses, best })
  }
  found.sort((a, b) => b.best - a.best || (a.path < b.path ? -1 : 1))
  return {
    failed,
    passed: tests.length - failed,
    files: new Map(found.map(({ path, uses }) => [path, uses])),
  }
}
