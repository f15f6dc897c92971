/**
 * The folder that a request names. What its caller hears depends on the caller's own roots:
 *
 * 1. A path that leads outside is refused as such, whether it exists or not, and the file system is
 *    not asked about it: the time of the answer says nothing either.
 * 2. Closed folders are outside. Folders of other tenants' runs are refused before anything is said
 *    about what is there.
 *
 * @module
 */
import { join, resolve } from 'node:path'
import { ForeignFolderError } from '../errors.js'
import type { RunOwner } from '../events.js'
import type { RunStore } from '../store.js'
import {
  checkText, deepestReal, followLinks, isInside, locateRoot, outsideRoots, realOrAsIs,
  type NamedFolder,
} from '../workspace/paths.js'
import { hasForeignRun } from './foreign-run.js'

interface Rules {
  readonly store: RunStore
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  /** Whether a root may be named in which other tenants have runs. */
  readonly allowsRoots: boolean
}

/**
 * The real path of the folder at `path`, which is absolute or begins at the first of the `roots`.
 *
 * @throws {@link WorkspaceError} for a path outside the roots, or that is no folder;
 * {@link ForeignFolderError}
 */
export async function requestedFolder(
  path: string,
  roots: readonly NamedFolder[],
  { tenant }: RunOwner,
  { store, closed, allowsRoots }: Rules,
): Promise<string> {
  checkText(path)
  // A relative path never depends on where the service was started.
  const absolute = resolve(roots[0]!.real, path)
  const place = await followLinks(await fromAnywhere(absolute, tenant), roots)
  if (place === null) throw outsideRoots(absolute)
  const real = roots.map((root) => root.real)
  const closedPaths = await Promise.all(closed.map(realOrAsIs))
  const check = async (folder: string): Promise<void> => {
    if (closedPaths.some((one) => isInside(folder, one))) throw outsideRoots(absolute)
    if (allowsRoots && real.includes(folder)) return
    if (await hasForeignRun(store, folder, tenant)) throw new ForeignFolderError()
  }
  return await locateRoot(place, real, check, absolute)
}

/** Callers without a tenant may also name a root by a link outside, whose place is looked up. */
async function fromAnywhere(absolute: string, tenant: string | null): Promise<string> {
  if (tenant !== null) return absolute
  const { existing, missing } = await deepestReal(absolute)
  return join(existing, missing)
}
