import { realpathSync, statSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { describeValue } from '../../internal/options.js'
import type { RunOwner } from '../events.js'
import type { NamedFolder } from '../workspace/paths.js'

/** The folders that the runs of an owner may work in; at least one. */
export type NamedRootsOf = (owner: RunOwner) => Promise<readonly NamedFolder[]>

/** The same by their real paths. */
export type RootsOf = (owner: RunOwner) => Promise<readonly string[]>

/** The option `roots` of {@link EngineOptions}: a list, or a function of the principal. */
export type Roots =
  | readonly string[]
  | ((principal: RunOwner | null) => readonly string[] | Promise<readonly string[]>)

/**
 * Checks a list at once, and what a function returns at each call, so that a mistake in it never
 * opens more folders than were meant.
 *
 * @throws TypeError that names what is wrong with a list; the function returned does so, too.
 */
export function resolveRoots(roots: Roots): NamedRootsOf {
  if (typeof roots !== 'function') {
    const named = namedRoots(roots)
    return () => Promise.resolve(named)
  }
  return async (owner) => {
    const isNobody = owner.id === null && owner.tenant === null
    const returned: unknown = await roots(isNobody ? null : owner)
    if (!Array.isArray(returned) || returned.length === 0) {
      throw new TypeError('roots(principal) must return a list of at least one folder')
    }
    return await Promise.all(returned.map(returnedRoot))
  }
}

function namedRoots(roots: readonly string[]): NamedFolder[] {
  if (!Array.isArray(roots)) {
    throw new TypeError(`roots must be an array or a function, got ${describeValue(roots)}`)
  }
  if (roots.length === 0) throw new TypeError('roots must name at least one folder, got none')
  return roots.map((root: unknown) => {
    if (typeof root !== 'string' || root === '') {
      throw new TypeError(`roots must be paths of folders, got ${describeValue(root)}`)
    }
    let real: string
    try {
      real = realpathSync(root)
    } catch (cause) {
      throw new TypeError(`roots: ${root} does not exist`, { cause })
    }
    if (!statSync(real).isDirectory()) throw new TypeError(`roots: ${root} is not a folder`)
    return { named: resolve(root), real }
  })
}

async function returnedRoot(root: unknown): Promise<NamedFolder> {
  if (typeof root !== 'string' || !isAbsolute(root)) {
    throw new TypeError(`roots(principal) must return absolute paths, got ${JSON.stringify(root)}`)
  }
  let real: string
  try {
    real = await realpath(root)
  } catch (cause) {
    throw new TypeError(`roots(principal) returned ${root}, which does not exist`, { cause })
  }
  if ((await stat(real)).isDirectory()) return { named: resolve(root), real }
  throw new TypeError(`roots(principal) returned ${root}, which is not a folder`)
}
