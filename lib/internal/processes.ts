import { readFileSync, readlinkSync } from 'node:fs'

/**
 * Does a process run that was started then? Pids are used again.
 *
 * @param started as {@link startOf} told it; null: any process with this pid
 */
export function isRunning(pid: number, started: string | null): boolean {
  return isAlive(pid) && (started === null || started === startOf(pid))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it is running as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Start time of a process in clock ticks since boot, or null where `/proc` is missing. */
export function startOf(pid: number): string | null {
  // Field 22 of its `stat`, counted after the name, which may hold `)`.
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  if (stat === null) return null
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // A zombie has ended; its parent has not waited for it yet.
  return fields[0] === 'Z' ? 'ended' : (fields[19] ?? null)
}

/** In which pids are numbered, `pid:[<number>]`; containers have their own. Null where unknown. */
export function pidNamespace(): string | null {
  return attempt(() => readlinkSync('/proc/self/ns/pid'))
}

function attempt(read: () => string): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
