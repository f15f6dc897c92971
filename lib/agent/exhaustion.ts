/**
 * Faults of the machine, not of the work: no file descriptor, process or memory is left right now,
 * or a disk fails on which the engine keeps files of its own. What meets one neither swallows it
 * nor reports it as a result; it gets to the run loop, which waits and performs the step again.
 *
 * 1. What a disk answers about a run's folder is a result. The same is a fault in
 *    {@link onOwnFiles} and {@link inOwnPlace}, for everything that is awaited in them.
 * 2. Every place that ignores errors calls {@link throwIfExhausted}.
 * 3. Errors that are bugs, such as `EBADF` and `EINVAL`, are no faults: see `machine-faults.ts`.
 *
 * @module
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Backoff, backoffBound, backoffDelay, type Clock, sleep, systemClock,
} from '../internal/time.js'
import { describeError, fieldOf, systemCode } from '../internal/errors.js'
import { ExhaustedError, isUnavailable, StoreError } from './errors.js'
import { DISK, NO_SPACE, PLACE, remedyFor, RESOURCES } from './machine-faults.js'

type Codes = ReadonlySet<string>

const codesOf = (...remedies: readonly object[]): Codes => new Set(remedies.flatMap(Object.keys))
const ANYWHERE = codesOf(RESOURCES)
const ON_OWN_FILES = codesOf(RESOURCES, DISK)
const IN_OWN_PLACE = codesOf(RESOURCES, DISK, PLACE)
const ROOM = codesOf(NO_SPACE)

/** Codes that are faults in what is being done. */
const faults = new AsyncLocalStorage<Codes>()
/** Calls in progress that have codes of their own. */
let calls = 0

/** Errors that cause each other; longer chains are not followed. */
const MAX_CAUSES = 8

/** The first of these codes that an error or what caused it has; null when there is none. */
function codeBehind(error: unknown, codes: Codes): string | null {
  for (let at = error, depth = 0; at !== undefined && depth < MAX_CAUSES; depth++) {
    const code = systemCode(at)
    if (code !== undefined && codes.has(code)) return code
    at = fieldOf(at, 'cause')
  }
  return null
}

/** Is there no room on a disk? */
export function lacksRoom(error: unknown): boolean {
  return codeBehind(error, ROOM) !== null
}

/** Has the machine no descriptors, processes or memory left, wherever that was met? */
export function lacksResources(error: unknown): boolean {
  return codeBehind(error, ANYWHERE) !== null
}

/** Is the machine at fault, so that the same may succeed later? */
export function isExhausted(error: unknown): boolean {
  if (error instanceof ExhaustedError) return true
  return codeBehind(error, faults.getStore() ?? ANYWHERE) !== null
}

/** The same, or the store cannot be used for now. */
export function mayPass(error: unknown): boolean {
  return error instanceof StoreError ? isUnavailable(error) : isExhausted(error)
}

/** Throws the error again if the machine is at fault: for places that ignore all other errors. */
export function throwIfExhausted(error: unknown): void {
  if (isExhausted(error)) throw error
}

/** Null, for a file that cannot be read because of `error`, unless the machine is at fault. */
export function unreadable(error: unknown): null {
  throwIfExhausted(error)
  return null
}

/** The error for work that was not done because of such a fault. */
export function exhausted(what: string, cause: unknown): ExhaustedError {
  return new ExhaustedError(`${what}: ${faultOf(cause)}`, { cause })
}

/** The same for a disk or the resources of the machine; null when neither is at fault. */
export function faultIn(error: unknown): string | null {
  return codeBehind(error, ON_OWN_FILES) === null ? null : faultOf(error)
}

/** What is wrong with the machine, in words; names no file. */
export function faultOf(error: unknown): string {
  const code = codeBehind(error, IN_OWN_PLACE)
  const remedy = code === null ? undefined : remedyFor(code)
  if (remedy !== undefined) return remedy
  return error instanceof StoreError ? 'the store is unavailable' : 'the machine is exhausted'
}

/**
 * Does work on files of the engine in which commands may have worked, such as a copy or a report: a
 * disk that fails is a fault of the machine. What they deny or remove is a result.
 *
 * @param what is not possible, as a clause, for the error
 * @throws {@link ExhaustedError} for faults of the machine; what `work` throws otherwise
 */
export async function onOwnFiles<T>(what: string, work: () => Promise<T>): Promise<T> {
  return await within(ON_OWN_FILES, what, work)
}

/** The same in places that no command can have changed: what denies access is a fault as well. */
export async function inOwnPlace<T>(what: string, work: () => Promise<T>): Promise<T> {
  return await within(IN_OWN_PLACE, what, work)
}

async function within<T>(codes: Codes, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await runWith(codes, work)
  } catch (error) {
    if (error instanceof StoreError || error instanceof ExhaustedError) throw error
    throw codeBehind(error, codes) === null ? error : exhausted(what, error)
  }
}

/** Calls `work` exempt from {@link onOwnFiles} and {@link inOwnPlace}, even inside such a call. */
export async function elsewhere<T>(work: () => Promise<T>): Promise<T> {
  return await runWith(ANYWHERE, work)
}

/** Before Node 24, a storage that is in use slows down every promise of the process. */
async function runWith<T>(codes: Codes, work: () => Promise<T>): Promise<T> {
  calls += 1
  try {
    return await faults.run(codes, work)
  } finally {
    endCall()
  }
}

function endCall(): void {
  calls -= 1
  if (calls === 0) faults.disable()
}

/** {@link elsewhere} for work that is synchronous. */
export function elsewhereNow<T>(work: () => T): T {
  return runNow(ANYWHERE, work)
}

/** {@link onOwnFiles} for synchronous work; leaves it to the caller to convert the error. */
export function onOwnFilesNow<T>(work: () => T): T {
  return runNow(ON_OWN_FILES, work)
}

function runNow<T>(codes: Codes, work: () => T): T {
  calls += 1
  try {
    return faults.run(codes, work)
  } finally {
    endCall()
  }
}

/**
 * The error of a thread that failed. One that could not start because of such a fault names it in
 * its message only; one that ran out of memory has a code of its own.
 */
export function threadFailure(what: string, error: Error): Error {
  const message = `${what}: ${error.message}`
  const { code } = error as NodeJS.ErrnoException
  const named = [...ANYWHERE].find((fault) => error.message.endsWith(fault))
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return new ExhaustedError(message, { cause: error })
  if (code === 'ERR_WORKER_INIT_FAILED' && named !== undefined) {
    return exhausted(what, Object.assign(new Error(message, { cause: error }), { code: named }))
  }
  return new Error(message, { cause: error })
}

/** Delays between attempts while the machine or a store is at fault. */
export const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 }

/** What waits now, in this process. */
const waits = new Set<MachineWait>()

/** Why something waits for the machine in this process; null while nothing does. */
export function machineProblem(): string | null {
  const [first] = waits
  return first === undefined ? null : `waiting for the machine: ${first.problem}`
}

/** One wait for the machine or a store, over any number of attempts. */
export class MachineWait {
  problem = ''
  #attempts = 0

  /**
   * Waits after a failed attempt.
   *
   * @throws the signal's reason.
   */
  async pause(error: unknown, signal: AbortSignal, clock: Clock = systemClock): Promise<void> {
    waits.add(this)
    this.problem = describeError(error)
    this.#attempts += 1
    // At least half of each bound: without a minimum, a busy machine would be asked at once.
    const bound = backoffBound(this.#attempts, BACKOFF)
    await sleep(bound / 2 + backoffDelay(this.#attempts, BACKOFF) / 2, signal, clock)
  }

  /** Called when an attempt has succeeded, or there will be none. */
  end(): void {
    waits.delete(this)
  }
}

/** Repeats work while the machine, or the store, is at fault; until the signal aborts, if any. */
export type Patience = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/**
 * Does what follows something that has happened, and is therefore not to be repeated as a whole:
 * waits while the machine, or the store, is at fault.
 *
 * @throws what `work` throws otherwise; the signal's reason.
 */
export async function untilPossible<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  clock?: Clock,
): Promise<T> {
  const wait = new MachineWait()
  try {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!mayPass(error)) throw error
        await wait.pause(error, signal, clock)
      }
    }
  } finally {
    wait.end()
  }
}

/**
 * Repeats work while the store is unavailable.
 *
 * @throws what `work` throws otherwise; the signal's reason once it has aborted.
 */
export async function untilAvailable<T>(
  work: () => Promise<T>,
  clock: Clock,
  signal: AbortSignal | null = null,
): Promise<T> {
  for (let retry = 1; ; retry++) {
    try {
      return await work()
    } catch (error) {
      signal?.throwIfAborted()
      if (!isUnavailable(error)) throw error
    }
    await sleep(backoffDelay(retry, BACKOFF), signal, clock)
  }
}
