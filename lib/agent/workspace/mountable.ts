import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readlinkSync, type Dirent }
  from 'node:fs'
import { throwIfExhausted } from '../exhaustion.js'
import { copiedLink, type CopiedFolder } from './copied-links.js'
import type { CopiedPaths } from './copied-paths.js'
import { toSystem, type RawPath } from './raw-paths.js'
import { READ_FLAGS } from './tree-walk.js'

/** Smaller folders are copied in no time, and can be written to then. */
const WORTH_IT = 200
const MAX_DEPTH = 64
const MAX_STATE_BYTES = 32 * 1024 * 1024

/**
 * May a folder of packages be mounted read-only into the copy, in place of being copied? Not when
 * something in it leads back into the original, because that cannot be redirected in a mount, nor
 * when copies share the blocks of the original.
 *
 * @param shares can the blocks of an open file be shared?
 */
export function canBeMounted(
  folder: RawPath,
  copies: readonly CopiedFolder[],
  paths: CopiedPaths,
  closed: ReadonlySet<RawPath>,
  shares: (file: number) => boolean,
): boolean {
  let entries = 0
  let asked = false
  /** False as well for one that is too large to be looked at. */
  const holdsNone = (file: number): boolean =>
    fstatSync(file).size <= MAX_STATE_BYTES && !paths.isIn(readFileSync(file))
  const isFine = (path: RawPath, entry: Dirent, depth: number): boolean => {
    const child = `${path}/${entry.name}`
    entries += 1
    if (closed.has(child)) return false
    if (entry.isDirectory()) return depth < MAX_DEPTH && areFine(child, depth + 1)
    if (entry.isSymbolicLink()) {
      return copiedLink(path, readlinkSync(toSystem(child), 'latin1'), copies).kind === 'same'
    }
    if (!entry.isFile()) return false
    if (!asked && withFile(child, shares)) return false
    asked = true
    const isState = depth === 0 ? entry.name.startsWith('.') : path.endsWith('/.bin')
    return !isState || withFile(child, holdsNone)
  }
  const areFine = (path: RawPath, depth: number): boolean =>
    readdirSync(toSystem(path), { encoding: 'latin1', withFileTypes: true }).every((entry) =>
      isFine(path, entry, depth),
    )
  try {
    return areFine(folder, 0) && entries >= WORTH_IT
  } catch (error) {
    throwIfExhausted(error)
    return false // something changed meanwhile, or cannot be read: copying tells what
  }
}

function withFile(path: RawPath, use: (file: number) => boolean): boolean {
  const file = openSync(toSystem(path), READ_FLAGS)
  try {
    return use(file)
  } finally {
    closeSync(file)
  }
}
