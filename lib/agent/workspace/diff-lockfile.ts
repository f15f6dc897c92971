/** What changed between two states of a lock file. @module */
import { packagesOf, type Packages } from './lock-files.js'

/** What became of a package. A version that is in both lists is from another source than before. */
export interface PackageChange {
  readonly name: string
  /** Versions that are gone, sorted. */
  readonly before: readonly string[]
  /** New versions, sorted. */
  readonly after: readonly string[]
}

/** What changed in one lock file. */
export interface LockChange {
  readonly path: string
  /** By name, the first {@link MAX_PACKAGES}; null when they cannot be told from the text. */
  readonly packages: readonly PackageChange[] | null
  /** Packages that changed and are not in the list. */
  readonly more: number
  readonly additions: number
  readonly deletions: number
}

/** Packages that are named for one lock file. */
export const MAX_PACKAGES = 20
/** Characters of a longer name or version are not a name or version of a package. */
const MAX_CHARACTERS = 300
/** Packages that are compared between two yields. */
const PER_STEP = 1_000

/** Compares the packages of two texts. */
export function* changedPackages(
  path: string,
  before: string,
  after: string,
): Generator<void, Pick<LockChange, 'packages' | 'more'>> {
  const empty: Packages = new Map()
  const old = before === '' ? empty : yield* packagesOf(path, before)
  const now = after === '' ? empty : yield* packagesOf(path, after)
  if (old === null || now === null) return { packages: null, more: 0 }
  const packages: PackageChange[] = []
  let changed = 0
  for (const name of [...new Set([...old.keys(), ...now.keys()])].sort()) {
    const before = onlyIn(old.get(name), now.get(name))
    const after = onlyIn(now.get(name), old.get(name))
    if (before.length + after.length === 0) continue
    changed++
    const isNamed = [name, ...before, ...after].every(({ length }) => length <= MAX_CHARACTERS)
    if (isNamed && packages.length < MAX_PACKAGES) packages.push({ name, before, after })
    if (changed % PER_STEP === 0) yield
  }
  return { packages, more: changed - packages.length }
}

type Versions = ReadonlyMap<string, ReadonlySet<string>>

/** The versions of one that the other does not have, or has from another source. */
function onlyIn(one: Versions | undefined, other: Versions | undefined): readonly string[] {
  const all = [...(one ?? [])].flatMap(([version, sources]) =>
    isSame(sources, other?.get(version)) ? [] : [version],
  )
  return all.sort()
}

function isSame(one: ReadonlySet<string>, other: ReadonlySet<string> | undefined): boolean {
  return one.size === other?.size && [...one].every((source) => other.has(source))
}
