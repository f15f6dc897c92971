/**
 * Finding and ending processes. A process group holds what a command started in the usual way;
 * what left it (`setsid`) is found by its environment in `/proc`, where there is one.
 *
 * @module
 */
import { readFileSync, readdirSync } from 'node:fs'
import { setImmediate, setTimeout as delay } from 'node:timers/promises'

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
      const ids = processIds()
      return ids === null ? [-pgid] : await filterInSlices(ids, (id) => groupOf(id) === pgid)
    },
  }
}

/** The processes whose environment has `name=value`; none where there is no `/proc`. */
export function markedProcesses(name: string, value: string): ProcessSet {
  const entry = Buffer.from(`\0${name}=${value}\0`)
  return {
    async members() {
      // An empty mark would be everybody's.
      const ids = value === '' ? null : processIds()
      let unsure: number[] = []
      const isMarked = (id: number): boolean => {
        const marked = id !== process.pid && hasEntry(id, entry)
        if (marked === null) unsure.push(id)
        return marked === true
      }
      const members = [...(await filterInSlices(ids ?? [], isMarked))]
      // Some have no environment ever; one that is about to get it has it within these looks.
      for (let look = 0; look < 3 && unsure.length > 0; look++) {
        await delay(2 ** look)
        const again = unsure
        unsure = []
        members.push(...again.filter(isMarked))
      }
      return members
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
function processIds(): readonly number[] | null {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
  } catch {
    return null
  }
}

/** Processes looked at before others get their turn. */
const SLICE = 64

/**
 * Filters process ids by a look into `/proc`, which never waits for a disk: reading it directly
 * takes a tenth of the time that the thread pool takes.
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

/** The process group of a process that lives, or null. */
function groupOf(pid: number): number | null {
  const fields = statOf(pid)
  return fields === null ? null : Number(fields[2])
}

/** State, parent, group and so on of a process that lives, or null. */
function statOf(pid: number): readonly string[] | null {
  const stat = readProc(pid, 'stat')?.toString('latin1')
  // The name in parentheses may hold anything.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields === undefined || fields[0] === 'Z' || fields[0] === 'X' ? null : fields
}

/**
 * Is the entry part of the environment with which a process was started? Null when there is none
 * to be seen: in the middle of starting a program a process has none for a moment.
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

/** A file of a process, or null when the process has gone or is somebody else's. */
function readProc(pid: number, name: 'stat' | 'environ'): Buffer | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`)
  } catch {
    return null
  }
}
