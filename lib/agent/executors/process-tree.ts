/**
 * Finding and ending processes. Most processes of a command are in its process group; those that
 * left it (`setsid`) are found by a variable in their environment, on systems with `/proc`.
 *
 * @module
 */
import { readFileSync, readdirSync } from 'node:fs'
import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import { isExhausted, throwIfExhausted } from '../exhaustion.js'

/** Milliseconds between SIGTERM and SIGKILL. */
export const GRACE_MS = 2_000
/** Milliseconds to wait after SIGKILL, which a process in a kernel call may not receive at once. */
const KILL_WAIT_MS = 2_000

/** A set of processes, looked up at each call. */
export interface ProcessSet {
  /** Ids of the living members; zombies are not among them. */
  members(): Promise<readonly number[]>
}

/** The members of a process group. */
export function processGroup(pgid: number): ProcessSet {
  return {
    async members() {
      if (!signalGroup(pgid, 0)) return []
      return await lookUp([-pgid], async () => {
        const ids = processIds()
        return ids === null ? [-pgid] : await filterInSlices(ids, (id) => groupOf(id) === pgid)
      })
    },
  }
}

/** The processes with `name=value` in their environment; none on systems without `/proc`. */
export function markedProcesses(name: string, value: string): ProcessSet {
  const entry = Buffer.from(`\0${name}=${value}\0`)
  return {
    members: () => lookUp([], async () => {
      // An empty mark would match processes that are not ours.
      const ids = value === '' ? null : processIds()
      let unsure: number[] = []
      const isMarked = (id: number): boolean => {
        const marked = id !== process.pid && hasEntry(id, entry)
        if (marked === null) unsure.push(id)
        return marked === true
      }
      const members = [...(await filterInSlices(ids ?? [], isMarked))]
      // Some never have an environment; a process that is just starting has it within these tries.
      for (let attempt = 0; attempt < 3 && unsure.length > 0; attempt++) {
        await delay(2 ** attempt)
        const again = unsure
        unsure = []
        members.push(...again.filter(isMarked))
      }
      return members
    }),
  }
}

/** Milliseconds for which processes are looked up while no descriptor is left to do that. */
const LOOKUP_MS = 2_000

/** What `find` returns; `otherwise` if no descriptor is left to read `/proc` for too long. */
async function lookUp(
  otherwise: readonly number[],
  find: () => Promise<readonly number[]>,
): Promise<readonly number[]> {
  const end = performance.now() + LOOKUP_MS
  for (;;) {
    try {
      return await find()
    } catch (error) {
      if (!isExhausted(error)) throw error
      if (performance.now() >= end) return otherwise
      await delay(50)
    }
  }
}

/** Sends a signal to a process group; false when it does not exist. Signal 0 only checks that. */
export function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  return signalProcess(-pgid, signal)
}

/** Sends a signal to a process; false when it does not exist. */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Waits until `sets` have no members left, polling with growing pauses; false when they still have
 * some after `timeoutMs`.
 */
export async function waitUntilGone(
  sets: readonly ProcessSet[],
  timeoutMs: number,
): Promise<boolean> {
  const end = performance.now() + timeoutMs
  for (let pauseMs = 2; ; pauseMs = Math.min(pauseMs * 2, 100)) {
    if ((await membersOf(sets)).length === 0) return true
    const left = end - performance.now()
    if (left <= 0) return false
    await delay(Math.min(pauseMs, left))
  }
}

/**
 * Kills all members, repeatedly until none is left, since a process may start another between
 * lookup and signal. Resolves with the number of killed processes.
 */
export async function killAll(sets: readonly ProcessSet[]): Promise<number> {
  const killed = new Set<number>()
  const end = performance.now() + KILL_WAIT_MS
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    const members = await membersOf(sets)
    if (members.length === 0) return killed.size
    for (const pid of members) if (signalProcess(pid, 'SIGKILL')) killed.add(pid)
    if (performance.now() > end) return killed.size
    await delay(pauseMs)
  }
}

/** The members of all sets, each once. */
export async function membersOf(sets: readonly ProcessSet[]): Promise<readonly number[]> {
  const members = await Promise.all(sets.map((set) => set.members()))
  return [...new Set(members.flat())]
}

/** Ids of all processes; null on systems without `/proc`. */
function processIds(): readonly number[] | null {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
  } catch (error) {
    throwIfExhausted(error)
    return null
  }
}

/** Processes examined between yields to the event loop. */
const SLICE = 64

/**
 * Filters process ids by what `/proc` shows. It never waits for a disk, so `belongs` reads it
 * synchronously, in a tenth of the time that the thread pool takes.
 */
async function filterInSlices(
  ids: readonly number[],
  belongs: (id: number) => boolean,
): Promise<readonly number[]> {
  const members: number[] = []
  for (let i = 0; i < ids.length; i += SLICE) {
    if (i > 0) await setImmediate()
    members.push(...ids.slice(i, i + SLICE).filter(belongs))
  }
  return members
}

/** The process group of a living process; null for any other. */
function groupOf(pid: number): number | null {
  const fields = statOf(pid)
  return fields === null ? null : Number(fields[2])
}

/** The fields of a living process's `stat` from its state on; null for any other. */
function statOf(pid: number): readonly string[] | null {
  const stat = readProc(pid, 'stat')?.toString('latin1')
  // The name in parentheses may contain anything, parentheses included.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields === undefined || fields[0] === 'Z' || fields[0] === 'X' ? null : fields
}

/**
 * True when the entry is part of the environment that a process was started with. Null when it
 * shows no environment: while a process starts a program, it has none for a moment.
 */
function hasEntry(pid: number, entry: Buffer): boolean | null {
  const environment = readProc(pid, 'environ')
  if (environment === null) return false
  if (environment.length === 0) return runsProgram(pid) ? null : false
  return Buffer.concat([Buffer.of(0), environment, Buffer.of(0)]).includes(entry)
}

/** Linux's PF_KTHREAD. */
const KERNEL_THREAD = 0x00200000

/** False for the kernel's own threads, and for processes that have ended. */
function runsProgram(pid: number): boolean {
  const fields = statOf(pid)
  return fields !== null && (Number(fields[6]) & KERNEL_THREAD) === 0
}

/** A file of a process; null when the process is gone or belongs to another user. */
function readProc(pid: number, name: 'stat' | 'environ'): Buffer | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`)
  } catch (error) {
    throwIfExhausted(error)
    return null
  }
}
