/**
 * What a command did with the files of a copy that was made with `CopyPolicy.unread`.
 *
 * 1. All that was copied has access time 0. The first one who reads a file gives it another one,
 *    also where access times are kept roughly (`relatime`), because 0 is older than the last
 *    change. Looking at a file (`stat`) does not.
 * 2. A program that sets access times back, or opens files so that they are not kept
 *    (`O_NOATIME`), is not seen; nor is one that shares the blocks of a file (`FICLONE`).
 * 3. Change times are those of the file system's clock, which moves in steps of some milliseconds:
 *    {@link fileSystemTime} waits for the next step. What was written before it has an older
 *    change time then, and what is written after it has this or a newer one.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { lstat, lutimes, open, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { sleep } from '../../internal/time.js'
import type { FileSystemTime, TouchedFiles } from './find-touched.js'
import { performTask, taskError } from './folder-threads.js'
import { foldersAbove } from './net-changes.js'
import { failure } from './paths.js'

/**
 * Finds what was touched in a copy. Version control, dependencies and caches are passed over, and
 * so are names that are no UTF-8. Called a second time, it finds the same.
 *
 * @param since see {@link fileSystemTime}: what has this change time or a newer one was changed
 * @throws {@link WorkspaceError} when the folder cannot be looked at, or has more than 200 000
 * entries; the signal's reason.
 */
export async function touchedFiles(
  folder: string,
  since: FileSystemTime,
  signal?: AbortSignal,
): Promise<TouchedFiles> {
  const report = await performTask<TouchedFiles>({ t: 'touched', folder, since }, signal)
  if ('result' in report) return report.result
  if ('error' in report) throw taskError(`${folder} cannot be looked at`, report)
  throw failure(`${folder} holds more than 200 000 files`)
}

/** Gives access time 0 to files and links that were added to such a copy, with their folders. */
export async function makeUnread(folder: string, paths: readonly string[]): Promise<void> {
  const all = new Set(paths.flatMap((path) => [...foldersAbove(path), path]))
  for (const path of ['.', ...all]) {
    const { mtimeMs } = await lstat(join(folder, path))
    await lutimes(join(folder, path), 0, mtimeMs / 1000)
  }
}

/** Some file systems count in steps of two seconds. */
const MAX_STEP_MS = 3_000

/**
 * The time of the file system's clock in a folder, once it has moved on: see rule 3.
 *
 * @throws {@link WorkspaceError} when no file can be made in the folder.
 */
export async function fileSystemTime(folder: string): Promise<FileSystemTime> {
  const path = `${folder}/.runwright-${randomBytes(8).toString('hex')}.tmp`
  let file: FileHandle | undefined
  try {
    file = await open(path, 'wx+')
    await file.write('x')
    const first = (await file.stat()).ctimeMs
    const start = performance.now()
    for (;;) {
      await file.utimes(0, 0)
      const { atimeMs, ctimeMs } = await file.stat()
      // A clock that stands still makes what was written just before it count as changed.
      if (ctimeMs > first || performance.now() - start > MAX_STEP_MS) {
        await file.read(Buffer.alloc(1), 0, 1, 0)
        const keepsAccessTimes = atimeMs === 0 && (await file.stat()).atimeMs !== 0
        return { ms: ctimeMs, keepsAccessTimes }
      }
      await sleep(1)
    }
  } catch (error) {
    throw failure(`no file can be made in ${folder}`, error)
  } finally {
    await file?.close()
    if (file !== undefined) await unlink(path)
  }
}
