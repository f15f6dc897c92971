/**
 * Where dependencies lie, and what in those folders is none.
 *
 * Caches are no dependencies, because programs change them at each run. But some of them hold code
 * that is loaded in place of what it was made from (`node_modules/.cache/@babel/register`,
 * `.vite/deps`), so an agent could plant it there. Those that changed are therefore told apart, to
 * be left out of the copy of a sealed check; bytecode of Python (`__pycache__`) is part of no such
 * copy. Both are caches only where programs put them; elsewhere they count as what they hold.
 *
 * @module
 */
import type { RawPath } from './raw-paths.js'

/** Folders of packages of Node, then other folders of dependencies. */
const OF_NODE: ReadonlySet<string> = new Set(['node_modules', 'bower_components'])
const OTHERS: ReadonlySet<string> = new Set([
  '.venv', 'venv', '__pypackages__', 'site-packages', 'dist-packages',
])
/** The same by the end of their path. */
const NESTED = /(?:^|\/)(?:vendor\/bundle|\.yarn\/(?:cache|unplugged|releases|plugins|sdks))$/
/** Files that stand for, or lead to, dependencies: Yarn finds programs by the state it keeps. */
const FILES = /(?:^|\/)(?:\.pnp\.[^/]+|\.yarn\/(?:install-state\.gz|build-state\.yml))$/
/** Files by which a folder is known as an environment of Python or Conda. */
export const ENVIRONMENT_MARKS: readonly string[] = ['pyvenv.cfg', 'conda-meta']

/** Folders of packages in folders of packages. */
const OF_PACKAGES = /^(?:@.*|\.bin|\.cache|\.pnpm)$/
const OF_OTHERS =
  /^(?:bin|Scripts|lib|lib64|Lib|python[\d.]+|(?:site|dist)-packages|ruby|gems|\d+\.\d.*)$/

/** Folders directly in `node_modules` in which programs keep what they can make anew. */
const CACHES: ReadonlySet<string> = new Set(['.cache', '.vite', '.vite-temp', '.vitest'])
/**
 * Files directly in `node_modules` by which package managers know what they installed, with times
 * in them. Nothing is loaded because of them.
 */
const STATE =
  /^(?:\.package-lock\.json|\.modules\.yaml|\.yarn-integrity|\.pnpm-workspace-state.*\.json)$/

/** Is it, by its name, a folder of dependencies? `path` is that in the workspace. */
export function isDependencyFolder(path: RawPath): boolean {
  const name = nameOf(path)
  return OF_NODE.has(name) || OTHERS.has(name) || NESTED.test(path)
}

/** Is it a file that belongs to dependencies, but to no folder of them? */
export function isDependencyFile(path: RawPath): boolean {
  return FILES.test(path)
}

/** What an entry in a folder of dependencies is. */
export type DependencyKind = 'package' | 'packages' | 'cache' | 'state'

/**
 * What an entry is whose parents are folders of packages.
 *
 * @param folder the folder of dependencies
 * @param parent of the entry, below that; empty for the folder itself
 */
export function kindOfEntry(folder: RawPath, parent: RawPath, name: RawPath): DependencyKind {
  if (!OF_NODE.has(nameOf(folder))) return OF_OTHERS.test(name) ? 'packages' : 'package'
  if (parent === '.cache') return 'cache'
  if (parent === '' && STATE.test(name)) return 'state'
  if (parent === '' && CACHES.has(name)) return name === '.cache' ? 'packages' : 'cache'
  const isOfPackages = parent === '.pnpm' ? name === 'node_modules' : OF_PACKAGES.test(name)
  return isOfPackages ? 'packages' : 'package'
}

function nameOf(path: RawPath): RawPath {
  return path.slice(path.lastIndexOf('/') + 1)
}
