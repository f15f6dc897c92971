/**
 * Reading and replacing single files of a workspace, by the rules in `paths.ts`.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { mkdir, open, rename, unlink, type FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { WorkspaceError } from '../errors.js'
import { fileChange, MAX_COMPARED_BYTES } from './diff.js'
import { codeOf, failure, outside, statOrNull } from './paths.js'
import type { Confinement, Location, OpenFolder } from './paths.js'
import { READ_FLAGS } from './walk-folder.js'
import type { FileChange } from './workspace.js'

/** See `Workspace.readFile`. */
export async function readConfined(
  confinement: Confinement,
  path: string,
  maxBytes: number,
): Promise<Uint8Array> {
  const { real } = await confinement.locate(path, false)
  return await explain(path, async () => {
    const { handle, size } = await openFile(confinement, path, real)
    await using _ = handle
    if (size > maxBytes) throw tooLarge(path, size, maxBytes)
    return await readAll(handle, path, size, maxBytes)
  })
}

/** The first bytes of a file, its size and its real path, relative to the root. */
export async function readStart(
  confinement: Confinement,
  path: string,
  maxBytes: number,
): Promise<{ readonly content: Uint8Array; readonly size: number; readonly path: string }> {
  const { real, relative } = await confinement.locate(path, false)
  return await explain(path, async () => {
    const { handle, size } = await openFile(confinement, path, real)
    await using _ = handle
    const buffer = Buffer.alloc(Math.min(size, maxBytes))
    let length = 0
    for (let bytesRead = -1; length < buffer.length && bytesRead !== 0; length += bytesRead)
      ({ bytesRead } = await handle.read(buffer, length, buffer.length - length, length))
    return { content: buffer.subarray(0, length), size, path: relative }
  })
}

/** Opens the regular file that was located at `real`. */
async function openFile(
  confinement: Confinement,
  path: string,
  real: string,
): Promise<{ readonly handle: FileHandle; readonly size: number }> {
  // Opening a device can have effects, so this check comes first; the one that counts is below.
  const at = confinement.at(real)
  requireFile(path, await statOrNull(at))
  const handle = await open(at, READ_FLAGS)
  try {
    await confinement.verify(handle, real)
    const stats = await handle.stat()
    requireFile(path, stats)
    return { handle, size: stats.size }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Reads to the end, since a file may grow or shrink after `size` was taken. */
async function readAll(
  handle: FileHandle,
  path: string,
  size: number,
  maxBytes: number,
): Promise<Uint8Array> {
  let buffer = Buffer.allocUnsafe(Math.min(size, maxBytes) + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
    if (length > maxBytes) throw tooLarge(path, length, maxBytes)
    if (length < buffer.length) continue
    const larger = Buffer.allocUnsafe(Math.min(buffer.length * 2, maxBytes + 1))
    buffer.copy(larger)
    buffer = larger
  }
}

/** See `Workspace.writeFile`. */
export async function replaceConfined(
  confinement: Confinement,
  path: string,
  content: Uint8Array,
): Promise<FileChange> {
  const location = await confinement.locate(path, true)
  if (location.relative === '') throw failure(`${path} is the workspace itself, not a file`)
  return await explain(path, async () => {
    await using folder = await openParent(confinement, location)
    const name = basename(location.real)
    const before = await readReplaced(folder, name, path)
    await replace(folder, name, content, before?.mode ?? null)
    const old = before === null ? null : before.content
    if (before !== null && old === null) {
      return { path: location.relative, change: 'modified', ...NOT_COMPARED }
    }
    return await fileChange(location.relative, old, content)
  })
}

const NOT_COMPARED = { added_lines: 0, removed_lines: 0, diff: '' }

/** Opens the folder that holds the file, creating missing folders one by one. */
async function openParent(confinement: Confinement, location: Location): Promise<OpenFolder> {
  const { existing, missing } = location
  const start = missing.length === 0 ? dirname(existing) : existing
  let folder = await confinement.openFolder(start)
  for (const name of missing.slice(0, -1)) {
    const parent = folder
    try {
      await mkdir(parent.entry(name)).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error
      })
      folder = await parent.child(name)
    } finally {
      await parent[Symbol.asyncDispose]()
    }
  }
  return folder
}

/** The file to be replaced, null when there is none; its content is null when it is too large. */
async function readReplaced(
  folder: OpenFolder,
  name: string,
  path: string,
): Promise<{ readonly mode: number; readonly content: Uint8Array | null } | null> {
  const stats = await statOrNull(folder.entry(name))
  if (stats === null) return null
  requireFile(path, stats)
  await using handle = await open(folder.entry(name), READ_FLAGS)
  const opened = await handle.stat()
  requireFile(path, opened)
  const content =
    opened.size > MAX_COMPARED_BYTES
      ? null
      : await readAll(handle, path, opened.size, MAX_COMPARED_BYTES)
  return { mode: opened.mode & 0o777, content }
}

/** Writes a temporary file beside the target and renames it; a link at the target is replaced. */
async function replace(
  folder: OpenFolder,
  name: string,
  content: Uint8Array,
  mode: number | null,
): Promise<void> {
  const temporary = folder.entry(`.runwright-${randomBytes(8).toString('hex')}.tmp`)
  const flags =
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)
  try {
    {
      await using handle = await open(temporary, flags, mode ?? 0o666)
      await handle.writeFile(content)
      // `open` applies the umask, which must not change the mode of an existing file.
      if (mode !== null) await handle.chmod(mode)
      await handle.datasync()
    }
    await rename(temporary, folder.entry(name))
  } catch (error) {
    await unlink(temporary).catch(() => undefined)
    throw error
  }
}

function requireFile(path: string, stats: Stats | null): void {
  if (stats === null) throw failure(`${path} does not exist`)
  if (stats.isFile()) return
  if (stats.isDirectory()) throw failure(`${path} is a folder, not a file`)
  if (stats.isSymbolicLink()) throw outside(path)
  throw failure(`${path} is a device, pipe or socket, not a file`)
}

function tooLarge(path: string, size: number, maxBytes: number): WorkspaceError {
  return failure(`${path} has ${size} bytes, more than the limit of ${maxBytes}`)
}

/** Turns errors of the file system into ones that name the path and the problem. */
export async function explain<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof WorkspaceError) throw error
    switch (codeOf(error)) {
      case 'ENOENT':
        throw failure(`${path} does not exist`, error)
      case 'ELOOP':
        // O_NOFOLLOW met a link that did not exist when the path was located.
        throw outside(path)
      case 'ENOTDIR':
        throw failure(`${path} leads through a file, not a folder`, error)
      case 'EISDIR':
        throw failure(`${path} is a folder, not a file`, error)
      case 'EACCES':
      case 'EPERM':
        throw failure(`permission denied for ${path}`, error)
      case 'ENOSPC':
      case 'EDQUOT':
        throw failure(`${path} cannot be written: the disk is full`, error)
      case 'ENAMETOOLONG':
        throw failure(`${path} is too long for this file system`, error)
      default:
        throw failure(`${path} cannot be accessed`, error)
    }
  }
}
