/**
 * Copies of folders, complete and private: see `tree-copy.ts` for what a copy is. Both functions
 * work in a thread of their own, so that they never keep the program waiting.
 *
 * @module
 */
import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { WorkspaceTooLargeError } from '../errors.js'
import { exhausted, isExhausted, threadFailure } from '../exhaustion.js'
import type { CopyReport, CopyTask } from './copy-tasks.js'
import { failure } from './paths.js'
import type { CopyResult } from './tree-copy.js'
import { WORKER_CODE } from './tree-worker-code.js'

/** How a folder is copied. */
export interface CopyPolicy {
  /** Where the copy will be found, if it gets its name once it is complete. @defaultValue `to` */
  readonly place?: string | undefined
  /** Folders that are not copied. @defaultValue none */
  readonly closed?: readonly string[] | undefined
  /** Bytes of all files, and 256 for each entry. @defaultValue no limit */
  readonly maxBytes?: number | undefined
  /**
   * Lets large `node_modules` stay empty, to be mounted read-only, where the file system cannot
   * share blocks and nothing in them leads back into the original. @defaultValue false
   */
  readonly mounts?: boolean | undefined
  /** Other folders that are copied: what leads into them leads into their copies. */
  readonly others?: readonly { readonly from: string; readonly to: string }[] | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Copies a folder with all that is in it: links as links, permissions, times, hard links, holes,
 * empty folders, names in any encoding. Not copied are closed folders, sockets, pipes and devices,
 * owners, and attributes beyond permissions. What leads back into the original leads into the copy.
 *
 * Rejects with nothing left at `to`.
 *
 * @param to must not exist; the folder above it must
 * @throws {@link WorkspaceTooLargeError}; {@link WorkspaceError} when the folder cannot be copied,
 * for example because the disk is full; `signal`'s reason.
 */
export async function copyTree(
  from: string,
  to: string,
  policy: CopyPolicy = {},
): Promise<CopyResult> {
  const { maxBytes = Infinity, mounts = false, others = [], closed = [], signal } = policy
  signal?.throwIfAborted()
  const source = await realpath(from).catch((error: unknown) => {
    throw failure(`${from} cannot be copied`, error)
  })
  const target = join(await realpath(dirname(resolve(to))), basename(to))
  const job = {
    from: source,
    to: target,
    copies: [{ from: source, to: policy.place ?? target }, ...others],
    closed: await Promise.all(closed.map(async (path) => await realpath(path).catch(() => path))),
    maxBytes,
    mounts,
  }
  const aborted = new Int32Array(new SharedArrayBuffer(4))
  const abort = (): void => void Atomics.store(aborted, 0, 1)
  signal?.addEventListener('abort', abort)
  try {
    signal?.throwIfAborted()
    const report = await inWorker({ t: 'copy', job, aborted })
    if ('result' in report) return report.result!
    await removeFolder(target)
    if ('error' in report) throw asError(`${from} cannot be copied to ${to}`, report)
    if (report.failed === 'too large') throw new WorkspaceTooLargeError(from, maxBytes)
    throw signal?.reason
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

/**
 * Finds out early that a copy would be too large; it may still turn out so later.
 *
 * @throws as {@link copyTree} does.
 */
export async function assertFits(
  folder: string,
  policy: Pick<CopyPolicy, 'maxBytes' | 'closed' | 'mounts'>,
): Promise<void> {
  const { maxBytes = Infinity, closed = [], mounts = false } = policy
  // What is mounted is not copied.
  const skipped = mounts ? ['node_modules'] : []
  const report = await inWorker({ t: 'measure', args: [folder, maxBytes, closed, skipped] })
  if ('error' in report) throw asError(`${folder} cannot be copied`, report)
  if ('failed' in report) throw new WorkspaceTooLargeError(folder, maxBytes)
}

/**
 * Removes a folder with all that is in it, whatever its permissions and depth.
 *
 * @throws {@link WorkspaceError} when something cannot be removed.
 */
export async function removeFolder(folder: string): Promise<void> {
  const report = await inWorker({ t: 'remove', folder })
  if ('error' in report) throw asError(`${folder} cannot be removed`, report)
}

async function inWorker(task: CopyTask): Promise<CopyReport> {
  return await new Promise((done, fail) => {
    const options = { eval: true, workerData: task, env: {}, execArgv: [] }
    const worker = new Worker(WORKER_CODE, options)
    let report: CopyReport = { error: 'its thread ended', code: undefined }
    worker.once('message', (message: CopyReport) => (report = message))
    worker.once('error', (error) => fail(threadFailure('the thread of a copy ended', error)))
    // Only then are its files closed.
    worker.once('exit', () => done(report))
  })
}

function asError(what: string, failed: { error: string; code: string | undefined }): Error {
  const { error, code } = failed
  const cause = Object.assign(new Error(error), { code })
  if (isExhausted(cause)) return exhausted(what, cause)
  const remedy = REMEDIES[code ?? '']
  return failure(`${what}: ${remedy ?? error}`, cause)
}

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; make room, or set workspaceFolder to a folder on another disk',
  EDQUOT: 'the quota of the disk is used up; make room, or set workspaceFolder to another disk',
}
