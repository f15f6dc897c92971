import { lstat, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { unreadable } from '../../exhaustion.js'
import type { HeldOutTests } from './held-out-tests.js'

/**
 * Writes held-out tests into a copy. They replace whatever lies at their paths; a link on the way
 * is replaced by a folder, so that nothing is written outside of the copy. Nothing else may change
 * the copy meanwhile.
 */
export async function placeFiles(files: HeldOutTests['files'], root: string): Promise<void> {
  const made = new Set<string>()
  for (const [path, content] of files) {
    for (const folder of foldersOf(path)) {
      if (made.has(folder)) continue
      await makeFolder(join(root, folder))
      made.add(folder)
    }
    const place = join(root, path)
    await rm(place, { recursive: true, force: true })
    await writeFile(place, content, { flag: 'wx' })
  }
}

/** The folders above a file, from the outermost to the innermost. */
function foldersOf(path: string): readonly string[] {
  const above: string[] = []
  for (let at = dirname(path); at !== '.'; at = dirname(at)) above.unshift(at)
  return above
}

async function makeFolder(path: string): Promise<void> {
  const stats = await lstat(path).catch(unreadable)
  if (stats?.isDirectory() === true) return
  if (stats !== null) await rm(path, { force: true })
  await mkdir(path)
}
