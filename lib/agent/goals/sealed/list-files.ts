import { realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import { GoalError } from '../../errors.js'
import { unreadable } from '../../exhaustion.js'
import { isInside } from '../../workspace/paths.js'
import { exactPath } from '../../workspace/raw-paths.js'
import { SKIPPED_FOLDERS } from '../../workspace/skipped-folders.js'
import { unlessGone, walkFolder, WalkedFolder } from '../../workspace/walk-folder.js'

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
  const files: ListedFile[] = []
  const work = new LongWork()
  const top = new WalkedFolder(null, exactPath(root))
  const limits = { depth: MAX_DEPTH, names: MAX_ENTRIES + 1 }
  let entries = 0
  for (const found of unlessGone(() => walkFolder(top, limits)) ?? []) {
    entries += 1
    if (entries > MAX_ENTRIES) throw tooMuch(`it holds more than ${MAX_ENTRIES} files`)
    if (work.isDue) await work.next()
    signal?.throwIfAborted()
    const { kind, name } = found
    const path = Buffer.from(found.path, 'latin1').toString('utf8')
    if (kind === 'folder') {
      if (CACHES.has(name)) files.push({ path, kind: 'cache' })
      else if (!SKIPPED_FOLDERS.has(name)) {
        if (found.isDeepest) throw tooMuch(`folders nest deeper than ${MAX_DEPTH} levels`)
        found.tryEnter()
      }
    } else if (kind === 'link' && !SKIPPED_FOLDERS.has(name)) {
      real ??= await realpath(root)
      files.push({ path, kind: await kindOfLink(root, real, path) })
    } else if (kind === 'file') files.push({ path, kind })
  }
  return files
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
