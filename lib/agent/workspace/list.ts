import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { throwIfExhausted } from '../exhaustion.js'
import { explain } from './files.js'
import { isRepository } from './git-names.js'
import { isPassedOver, isTemporary } from './left-out.js'
import { failure, statOrNull } from './paths.js'
import type { Confinement, OpenFolder } from './paths.js'
import type { WorkspaceEntry } from './workspace.js'

/** Names read from one folder; the rest of it is skipped. */
const MAX_NAMES = 20_000
/** Folders nested deeper than this are listed but not entered. */
const MAX_DEPTH = 64

/** What is listed, and who hears of what is passed over. */
export interface ListOptions {
  readonly recursive: boolean
  readonly limit: number
  onPassedOver?(path: string): void
}

/**
 * See `Workspace.list`. A folder comes before its content; links are listed and never followed.
 * What is passed over by its name is that of snapshots and trees, see `left-out.ts`; it is told of,
 * but for what does not exist for tools: git's own, closed folders, the service's temporary files.
 */
export async function listFolder(
  confinement: Confinement,
  path: string,
  options: ListOptions,
): Promise<readonly WorkspaceEntry[]> {
  const { real } = await confinement.locate(path, false)
  const stats = await statOrNull(confinement.at(real))
  if (stats !== null && !stats.isDirectory()) throw failure(`${path} is not a folder`)
  const entries: WorkspaceEntry[] = []
  await explain(path, async () => {
    await using folder = await confinement.openFolder(real)
    await walk(confinement, folder, options, entries, 0)
  })
  return entries
}

async function walk(
  confinement: Confinement,
  folder: OpenFolder,
  options: ListOptions,
  entries: WorkspaceEntry[],
  depth: number,
): Promise<void> {
  for (const name of await namesIn(folder)) {
    if (entries.length >= options.limit) return
    if (isTemporary(name) || confinement.hides(folder, name)) continue
    if (isPassedOver(name)) {
      options.onPassedOver?.(confinement.show(join(folder.real, name)))
      continue
    }
    const entry = await describe(confinement, folder, name)
    if (entry === null) continue
    entries.push(entry)
    if (!options.recursive || entry.type !== 'directory' || depth >= MAX_DEPTH) continue
    try {
      await using child = await folder.child(name)
      await walk(confinement, child, options, entries, depth + 1)
    } catch (error) {
      throwIfExhausted(error)
      // Not permitted, or no folder any more: it stays listed without its content.
    }
  }
}

async function namesIn(folder: OpenFolder): Promise<readonly string[]> {
  const names: string[] = []
  for await (const { name } of await opendir(folder.self, { bufferSize: 256 })) {
    names.push(name)
    if (names.length >= MAX_NAMES) break
  }
  return isRepository(names) ? [] : names.sort()
}

async function describe(
  confinement: Confinement,
  folder: OpenFolder,
  name: string,
): Promise<WorkspaceEntry | null> {
  const stats = await statOrNull(folder.entry(name))
  if (stats === null) return null
  const path = confinement.show(join(folder.real, name))
  if (stats.isFile()) return { path, type: 'file', size: stats.size }
  if (stats.isDirectory()) return { path, type: 'directory', size: 0 }
  return { path, type: stats.isSymbolicLink() ? 'symlink' : 'other', size: 0 }
}
