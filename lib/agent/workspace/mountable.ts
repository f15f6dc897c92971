import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { throwIfExhausted } from '../exhaustion.js'
import { copiedLink, type CopiedFolder } from './copied-links.js'
import { MAX_STATE_BYTES, type CopiedPaths } from './copied-paths.js'
import { toSystem, type RawPath } from './raw-paths.js'
import { READ_FLAGS, walkFolder, WalkedFolder, type Walked } from './walk-folder.js'

/** Smaller folders are copied in no time, and can be written to then. */
const WORTH_IT = 200

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
  let isShared: boolean | undefined
  /** False as well for one that is too large to be looked at. */
  const holdsNone = (file: number): boolean =>
    fstatSync(file).size <= MAX_STATE_BYTES && !paths.isIn(readFileSync(file))
  const isFine = (found: Walked): boolean => {
    const { at, depth, kind, name, path } = found
    const parent = `${folder}/${path}`.slice(0, -name.length - 1)
    entries += 1
    if (closed.has(`${folder}/${path}`)) return false
    if (kind === 'folder') return found.tryEnter()
    if (kind === 'link') {
      const target = found.folder.target(name)?.toString('latin1')
      return target !== undefined && copiedLink(parent, target, copies).kind === 'same'
    }
    if (kind !== 'file') return false
    isShared ??= withFile(at, shares)
    const isState = depth === 0 ? name.startsWith('.') : parent.endsWith('/.bin')
    return !isShared && (!isState || withFile(at, holdsNone))
  }
  try {
    using top = WalkedFolder.open(folder)
    for (const found of walkFolder(top)) if (!isFine(found)) return false
    return entries >= WORTH_IT
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
