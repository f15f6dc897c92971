import { realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import { GoalError } from '../../errors.js'
import { unreadable } from '../../exhaustion.js'
import { isInside } from '../../workspace/paths.js'
import { readFolder } from '../../workspace/read-folder.js'
import { SKIPPED_FOLDERS } from '../../workspace/skipped-folders.js'

const MAX_ENTRIES = 200_000
const MAX_DEPTH = 40

/** A file or link of a workspace; or a cache, which is a folder. */
export interface ListedFile {
  readonly path: string
  readonly kind: 'file' | 'link' | 'link to a folder' | 'link outside' | 'cache'
}

/** Folders of results that tools would take over from an earlier run. */
const CACHES = new Set(['__pycache__', '.mypy_cache', '.ruff_cache', '.turbo', '.nx', '.cache'])

/**
 * The files and links of a workspace, without dependencies and without following links.
 *
 * @throws {@link GoalError} when there are too many; the signal's reason when it is aborted.
 */
export async function listFiles(root: string, signal?: AbortSignal): Promise<ListedFile[]> {
  let real: string | undefined
  const found: ListedFile[] = []
  const work = new LongWork()
  let entries = 0
  const folder = async (path: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) throw tooMuch(`folders nest deeper than ${MAX_DEPTH} levels`)
    for (const entry of await readFolder(join(root, path), MAX_ENTRIES + 1)) {
      entries += 1
      if (entries > MAX_ENTRIES) throw tooMuch(`it holds more than ${MAX_ENTRIES} files`)
      if (work.isDue) await work.next()
      signal?.throwIfAborted()
      const child = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.isDirectory()) {
        if (CACHES.has(entry.name)) found.push({ path: child, kind: 'cache' })
        else if (!SKIPPED_FOLDERS.has(entry.name)) await folder(child, depth + 1)
      } else if (entry.isSymbolicLink() && !SKIPPED_FOLDERS.has(entry.name)) {
        real ??= await realpath(root)
        found.push({ path: child, kind: await kindOfLink(root, real, child) })
      } else if (entry.isFile()) found.push({ path: child, kind: 'file' })
    }
  }
  await folder('', 0)
  return found
}

async function kindOfLink(root: string, real: string, path: string): Promise<ListedFile['kind']> {
  const target = await realpath(join(root, path)).catch(unreadable)
  if (target === null) return 'link'
  const isFolder = (await stat(target).catch(unreadable))?.isDirectory() === true
  if (!isFolder) return 'link'
  return isInside(target, real) ? 'link to a folder' : 'link outside'
}


function tooMuch(problem: string): GoalError {
  return new GoalError(
    'unsuitable',
    `the workspace is too large to tell what is new in it: ${problem}; ` +
      "start the run in the package's own folder",
  )
}
