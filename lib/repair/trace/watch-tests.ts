import type { CommandResult, WorkspaceCopy } from '../../agent/index.js'
import type { LineUse, TestedLines } from '../trials/trial.js'
import { readTrace, watch, type Trace } from './trace.js'

/** How a watched command runs: with these variables, and a folder to write to. */
export type RunWatched = (options: {
  readonly env: Readonly<Record<string, string>>
  readonly writable: readonly string[]
}) => Promise<CommandResult>

/** Watches the tests of a command in a copy; null when nothing could be seen. */
export async function watchTests(
  copy: WorkspaceCopy,
  run: RunWatched,
): Promise<TestedLines | null> {
  return await copy.withFolder(async (folder) => {
    const env = await watch(folder, copy.root)
    const { exitCode } = await run({ env, writable: [folder] })
    return testedLines(await readTrace(folder), exitCode !== 0)
  })
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
