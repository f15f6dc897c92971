import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { LongWork } from '../../internal/time.js'
import { explain } from './files.js'
import { isRepository } from './git-names.js'
import { isPassedOver, isTemporary, MAX_TREE_DEPTH } from './left-out.js'
import { failure, statOrNull, type Confinement, type OpenFolder } from './paths.js'
import { exactPath, toText } from './raw-paths.js'
import { walkFolder, WalkedFolder, type WalkLimits } from './walk-folder.js'
import type { WorkspaceEntry } from './workspace.js'

const LIMITS: WalkLimits = {
  depth: MAX_TREE_DEPTH,
  names: 20_000,
  listed: (entries) => {
    if (isRepository(entries.map(({ name }) => name))) entries.length = 0
  },
}

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
  return await explain(path, async () => {
    await using folder = await confinement.openFolder(real)
    return await entriesBelow(confinement, folder, options)
  })
}

async function entriesBelow(
  confinement: Confinement,
  folder: Pick<OpenFolder, 'real' | 'path'>,
  { recursive, limit, onPassedOver }: ListOptions,
): Promise<readonly WorkspaceEntry[]> {
  const entries: WorkspaceEntry[] = []
  const work = new LongWork()
  const top = new WalkedFolder(null, exactPath(folder.path))
  for (const found of walkFolder(top, LIMITS)) {
    if (entries.length >= limit) break
    if (work.isDue) await work.next()
    // Names that are not UTF-8 could not be used.
    const [name, below] = [toText(found.name), toText(found.path)]
    if (name === undefined || below === undefined || isTemporary(name)) continue
    const real = join(folder.real, below)
    if (confinement.hides(real, name)) continue
    const path = confinement.show(real)
    if (isPassedOver(name)) {
      onPassedOver?.(path)
      continue
    }
    const stats = found.stat()
    if (stats === null) continue
    entries.push({ path, type: typeOf(stats), size: stats.isFile() ? stats.size : 0 })
    // What is not permitted stays listed without its content.
    if (recursive && stats.isDirectory()) found.tryEnter()
  }
  return entries
}

function typeOf(stats: Stats): WorkspaceEntry['type'] {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  return stats.isSymbolicLink() ? 'symlink' : 'other'
}
