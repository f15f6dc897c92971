/**
 * One name in an open folder: what is there, and how it is written and renamed. Links are never
 * followed.
 *
 * @module
 */
import { constants, type Stats } from 'node:fs'
import {
  chmod, link, lstat, open, readdir, readlink, rename, rmdir, stat, symlink, unlink,
  type FileHandle,
} from 'node:fs/promises'
import { nameOfBytes } from '../../internal/bytes.js'
import { hash } from '../../internal/hash.js'
import { throwIfExhausted } from '../exhaustion.js'
import type { TreeEntry } from '../tree.js'
import { explain } from './files.js'
import { overtaken, type FolderChain } from './folder-chain.js'
import { isPassedOver } from './left-out.js'
import { isSameEntry } from './net-changes.js'
import { codeOf, HAS_PROC, statOrNull } from './paths.js'
import type { PathStep } from './plan-steps.js'
import { isSameStats } from './walk-folder.js'

/** A path to a name in an open folder; it need not be UTF-8. */
export type At = string | Buffer

/** What is at a path. */
export interface Found {
  readonly stats: Stats
  /** Null for what is neither file nor link, or has another size than any that is expected. */
  readonly entry: TreeEntry | null
  readonly content: Uint8Array
}

/** Codes that tell of a change by another program. */
const OVERTAKEN: ReadonlySet<string> = new Set([
  'EEXIST', 'EISDIR', 'ELOOP', 'ENOENT', 'ENOTDIR', 'ENOTEMPTY',
])
/** Codes of file systems that have no hard links, and of files that must have none. */
const NO_LINKS: ReadonlySet<string> = new Set([
  'EMLINK', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EPERM',
])
/** Codes of a folder that stays: it holds something, is in use, or is none. */
const STAYS: ReadonlySet<string> = new Set([...OVERTAKEN, 'EACCES', 'EBUSY', 'EINVAL', 'EPERM'])

/** Opening a FIFO or terminal neither blocks nor takes it over. */
const READ_FLAGS =
  constants.O_RDONLY |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0) |
  (constants.O_NOCTTY ?? 0)
const CREATE_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)

/** False if another program has changed what is at the path since it was looked at. */
export async function unlessOvertaken(
  path: string,
  work: () => Promise<boolean>,
): Promise<boolean> {
  try {
    return await work()
  } catch (error) {
    // Faults of the machine, and those of who gives the contents, are not about this path.
    throwIfExhausted(error)
    if (OVERTAKEN.has(codeOf(error) ?? '')) return false
    if (typeof (error as NodeJS.ErrnoException).syscall !== 'string') throw error
    return await explain(path, () => Promise.reject(error as Error))
  }
}

/** The path to a name whose folder is opened; null when that does not exist. As `at()` does. */
export async function placeOf(
  folders: FolderChain,
  path: string,
  onMake?: (path: string) => void,
): Promise<At | null> {
  const slash = path.lastIndexOf('/')
  const folder = await folders.at(path.slice(0, Math.max(0, slash)), onMake)
  return folder === null ? null : folders.entry(path.slice(slash + 1))
}

/** What is at a path now; null for nothing. */
export async function look(at: At | null, { before, after }: PathStep): Promise<Found | null> {
  const stats = at === null ? null : await statOrNull(at)
  if (at === null || stats === null) return null
  const nothing = { stats, entry: null, content: NOTHING }
  if (stats.isSymbolicLink()) {
    const content = await readlink(at, { encoding: 'buffer' }).catch((error: unknown) => {
      throw codeOf(error) === 'EINVAL' ? overtaken() : error
    })
    return { stats, entry: entryOf('link', 0o777, content), content }
  }
  if (!stats.isFile() || ![before?.size, after?.size].includes(stats.size)) return nothing
  await using handle = await open(at, READ_FLAGS)
  const opened = await handle.stat()
  if (!isSameStats(stats, opened)) return nothing
  const content = await readWhole(handle, stats.size)
  return { stats, entry: entryOf('file', stats.mode & 0o777, content), content }
}

const NOTHING = new Uint8Array()

function entryOf(kind: TreeEntry['kind'], mode: number, content: Uint8Array): TreeEntry {
  return { kind, mode, sha256: hash('sha256', content), size: content.length }
}

/** The first `size` bytes; fewer when the file has become shorter. */
async function readWhole(handle: FileHandle, size: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafe(size)
  for (let length = 0; length < size; ) {
    const { bytesRead } = await handle.read(buffer, length, size - length, length)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
  }
  return buffer
}

/** True for the same file or link, whatever names it has. */
export function isSameFile(a: Stats, b: Stats): boolean {
  const isSame = a.ino === b.ino && a.dev === b.dev && a.mode === b.mode
  return isSame && a.size === b.size && a.mtimeMs === b.mtimeMs
}

/** True if what is at a path is what was looked at. */
export async function isStill(at: At, step: PathStep, stats: Stats): Promise<boolean> {
  const now = await lstat(at)
  if (isSameStats(stats, now) || !isSameFile(stats, now)) return isSameFile(stats, now)
  // Its time changes also when another name of it goes.
  const found = await look(at, step)
  return found?.entry != null && isSameEntry(found.entry, step.before)
}

/** Makes a file or link. @param replaced whose owner the file gets, as far as that is allowed */
export async function writeNew(
  at: At,
  { kind, mode }: TreeEntry,
  content: Uint8Array,
  replaced: Stats | null,
): Promise<void> {
  if (kind === 'link') return await symlink(Buffer.from(content), at)
  await using handle = await open(at, CREATE_FLAGS, 0o600)
  if (replaced !== null) await keepOwner(handle, replaced)
  await writeSparse(handle, content)
  await handle.chmod(mode)
  await handle.datasync()
}

/** Blocks of zeros become holes, which take no space on the disk. */
const HOLE = Buffer.alloc(64 * 1024)

async function writeSparse(handle: FileHandle, content: Uint8Array): Promise<void> {
  const isHole = (at: number): boolean =>
    at + HOLE.length <= content.length && HOLE.equals(content.subarray(at, at + HOLE.length))
  let done = 0
  for (let at = 0; at < content.length; ) {
    while (isHole(at)) at += HOLE.length
    let end = at
    while (end < content.length && !isHole(end)) end += HOLE.length
    end = Math.min(end, content.length)
    for (; at < end; done = at) {
      at += (await handle.write(content, at, end - at, at)).bytesWritten
    }
  }
  if (done < content.length) await handle.truncate(content.length)
}

async function keepOwner(handle: FileHandle, { uid, gid }: Stats): Promise<void> {
  const own = await handle.stat()
  if (own.uid === uid && own.gid === gid) return
  const denied = (error: unknown): void => {
    if (codeOf(error) !== 'EPERM') throw error
  }
  await handle.chown(uid, gid).catch(async (error: unknown) => {
    denied(error)
    await handle.chown(own.uid, gid).catch(denied)
  })
}

/** Gives a file a second name. No-op if that exists, without the file, and without hard links. */
export async function linkTo(at: At, second: At): Promise<void> {
  // Elsewhere, links are followed.
  if (!HAS_PROC) return
  await link(at, second).catch((error: unknown) => {
    const code = codeOf(error) ?? ''
    // An earlier call may have made the folder read-only.
    if (!['EACCES', 'EEXIST', 'ENOENT'].includes(code) && !NO_LINKS.has(code)) throw error
  })
}

/** Renames without replacing anything; false when something is there. */
export async function moveInto(from: At, to: At): Promise<boolean> {
  try {
    // Other than renaming, this replaces nothing.
    if (!HAS_PROC && (await lstat(from)).isSymbolicLink()) throw noLink()
    await link(from, to)
    await unlink(from)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error
    if ((await statOrNull(to)) !== null) return false
    await rename(from, to)
  }
  return true
}

function noLink(): Error {
  return Object.assign(new Error('links would be followed'), { code: 'ENOTSUP' })
}

/** Removes a folder that is empty; any other stays. */
export async function removeFolder(folders: FolderChain, path: string): Promise<void> {
  try {
    const at = folders.mayEnter(path) ? await placeOf(folders, path) : null
    if (at === null) return
    await rmdir(at)
    folders.changed()
  } catch (error) {
    if (!STAYS.has(codeOf(error) ?? '')) throw error
  }
}

/** Sets the permissions of a folder; false if others changed them, or it is not allowed. */
export async function setMode(
  folders: FolderChain,
  path: string,
  before: number | undefined,
  after: number,
): Promise<boolean> {
  try {
    const folder = await folders.at(path)
    if (folder === null) return false
    const { mode } = await stat(folder.self)
    const now = mode & 0o777
    if (now === after) return true
    if (before !== undefined && now !== before) return false
    folders.changed()
    await chmod(folder.self, (mode & 0o7000) | after)
    return true
  } catch (error) {
    if (['EACCES', 'EPERM'].includes(codeOf(error) ?? '')) return false
    throw error
  }
}

/** Removes what has the name of a temporary file. */
export async function removeOwn(folders: FolderChain, path: string): Promise<void> {
  const at = (await placeOf(folders, path))!
  if ((await lstat(at)).isDirectory()) await removeFolders(folders, path)
  else await unlink(at)
}

/** Removes a folder with the empty folders in it. */
export async function removeFolders(folders: FolderChain, path: string): Promise<void> {
  const found = await below(folders, path)
  for (const at of found?.folders.toReversed() ?? []) await removeFolder(folders, at)
}

/** The folders in a folder, itself included, and what else they hold; null for too many. */
export async function below(
  folders: FolderChain,
  path: string,
  most: number = MAX_FOLDERS,
): Promise<{ readonly folders: readonly string[]; readonly others: readonly string[] } | null> {
  const [found, others]: [string[], string[]] = [[path], []]
  for (const at of found) {
    if (found.length > most) return null
    const isOpen = await unlessOvertaken(at, async () => {
      const folder = at === '' || folders.mayEnter(at) ? await folders.at(at) : null
      if (folder === null) return false
      for (const entry of await readdir(folder.self, { encoding: 'buffer', withFileTypes: true })) {
        const name = nameOfBytes(entry.name)
        const isUsable = entry.isDirectory() && !isPassedOver(name)
        ;(isUsable ? found : others).push(at === '' ? name : `${at}/${name}`)
      }
      return true
    })
    // Paths in a folder that must not be entered are not named.
    if (!isOpen) others.push(path)
  }
  return { folders: found, others }
}

/** Folders that are looked at in one that has to make room. */
const MAX_FOLDERS = 1_000

/** What names have in common that are one name to some file systems. */
export function withoutCase(path: string): string {
  return path.normalize('NFC').toLowerCase()
}

/** Renames a folder through a third name, unless case matters or it has the name already. */
export async function renameCase(
  folders: FolderChain,
  from: string,
  to: string,
  third: string,
): Promise<void> {
  const at = await placeOf(folders, to)
  if (at === null) return
  const [old, wanted] = [from, to].map((path) => path.slice(path.lastIndexOf('/') + 1))
  const names = await readdir(folders.self)
  if (!names.includes(third)) {
    const isOther = names.includes(old!) && !names.includes(wanted!)
    if (!isOther || (await statOrNull(at)) === null) return
    await rename(folders.entry(old!), folders.entry(third))
  }
  folders.changed()
  await rename(folders.entry(third), at)
}
