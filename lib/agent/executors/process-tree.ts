/**
 * Finding and ending processes. A process group holds what a command started in the usual way;
 * what left it (`setsid`) is found by its environment in `/proc`, where there is one.
 *
 * @module
 */
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds that processes get to end by themselves after SIGTERM. */
export const GRACE_MS = 2_000
/** Milliseconds to wait for processes to go after SIGKILL; the kernel may hold one in a read. */
const KILL_WAIT_MS = 2_000

/** A set of processes that is looked up anew each time. */
export interface ProcessSet {
  /** Ids of the members that live; zombies don't. */
  members(): Promise<readonly number[]>
}

/** The members of a process group. */
export function processGroup(pgid: number): ProcessSet {
  return {
    async members() {
      if (!signalGroup(pgid, 0)) return []
      const ids = await processIds()
      if (ids === null) return [-pgid]
      const groups = await Promise.all(ids.map(groupOf))
      return ids.filter((_, i) => groups[i] === pgid)
    },
  }
}

/** The processes whose environment has `name=value`; none where there is no `/proc`. */
export function markedProcesses(name: string, value: string): ProcessSet {
  const entry = Buffer.from(`\0${name}=${value}\0`)
  return {
    async members() {
      // An empty mark would be everybody's.
      const ids = value === '' ? null : await processIds()
      if (ids === null) return []
      const marked = await Promise.all(ids.map((id) => hasEntry(id, entry)))
      return ids.filter((id, i) => marked[i] === true && id !== process.pid)
    },
  }
}

/** Sends a signal to a process group; false when there is none. Signal 0 only asks. */
export function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  return signalProcess(-pgid, signal)
}

/** Sends a signal to a process; false when it is not there. */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Waits until `sets` have no more members, asking again after growing pauses; false when that is
 * not so after `timeoutMs`.
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
 * Ends all members with SIGKILL, again and again until none is left, since a process may start
 * another while it is looked for. Resolves with the number of processes that were ended.
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

/** Ids of all processes, or null where there is no `/proc`. */
async function processIds(): Promise<readonly number[] | null> {
  try {
    const names = await readdir('/proc')
    return names.filter((name) => /^\d+$/.test(name)).map(Number)
  } catch {
    return null
  }
}

/** The process group of a process that lives, or null. */
async function groupOf(pid: number): Promise<number | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  // The name in parentheses may hold anything; after it come state, parent and group.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields === undefined || fields[0] === 'Z' || fields[0] === 'X') return null
  return Number(fields[2])
}

/** Is the entry part of the environment with which a process was started? */
async function hasEntry(pid: number, entry: Buffer): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`).catch(() => null)
  if (environment === null || environment.length === 0) return false
  return Buffer.concat([Buffer.of(0), environment, Buffer.of(0)]).includes(entry)
}
