/** Copies of packages, and what differs between two of them. */
import { createHash } from 'node:crypto'
import { cp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RealPackage } from './packages.js'

/** What runners leave behind. */
const CACHES = new Set(['node_modules', '__pycache__', '.pytest_cache', '.nyc_output', '.tap', '.git'])

/** Copies a package with all that is installed for it, but for files that are held out. */
export async function copyPackage(
  from: string, to: string, without: readonly string[] = [],
): Promise<void> {
  await cp(from, to, { recursive: true, verbatimSymlinks: true })
  for (const path of without) await rm(join(to, path))
}

export async function filesOf(folder: string, below = ''): Promise<string[]> {
  const entries = await readdir(join(folder, below), { withFileTypes: true })
  const found = await Promise.all(
    entries
      .filter(({ name }) => !CACHES.has(name))
      .map((entry) => {
        const path = join(below, entry.name)
        return entry.isDirectory() ? filesOf(folder, path) : [path]
      }),
  )
  return found.flat().sort()
}

/** The content of each file, as a hash. */
export type Snapshot = ReadonlyMap<string, string>

export async function snapshot(folder: string): Promise<Snapshot> {
  const hashes = new Map<string, string>()
  for (const path of await filesOf(folder)) {
    hashes.set(path, createHash('sha256').update(await readFile(join(folder, path))).digest('hex'))
  }
  return hashes
}

/** Paths that one has and the other has not, or not with this content. */
export function changedPaths(before: Snapshot, after: Snapshot): string[] {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].filter((path) => before.get(path) !== after.get(path))
}

export async function sourcesOf(one: RealPackage, folder: string): Promise<string[]> {
  return (await filesOf(folder)).filter((path) => one.sources.test(path) && !one.tests.test(path))
}

export async function testsOf(one: RealPackage, folder: string): Promise<string[]> {
  return (await filesOf(folder)).filter((path) => one.tests.test(path))
}
