/**
 * Processes, and the temporary folders of this one.
 *
 * @module
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { lstat, mkdtemp, readdir, realpath } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'

let known: string | null | undefined

/** Tells the starts of the machine apart; null where the system does not tell. */
export function bootId(): string | null {
  if (known === undefined) known = readBootId()
  return known
}

function readBootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return null
  }
}

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

/**
 * Temporary folders of this process, outside of what it works on: mode 0700, a random name that
 * also tells whose they are. What a killed process has left is found by that.
 */

/** What a folder is for: the pipe of a command, the report of a check, copies. */
export type TemporaryKind = 'command' | 'check' | 'sealed'

/** `runwright-<kind>-<pid namespace>-<pid>-<start>-<random>`; 0 for what is not known. */
const NAME = /^runwright-(?:command|check|sealed)-(\d+)-(\d+)-(\d+)-\w{6}$/

/** Makes a folder; `parent` is one of {@link temporaryParents}. */
export async function makeTemporaryFolder(
  kind: TemporaryKind,
  parent: string = tmpdir(),
): Promise<string> {
  own ??= `${namespace()}-${process.pid}-${startOf(process.pid) ?? '0'}`
  return await mkdtemp(join(parent, `runwright-${kind}-${own}-`))
}

/** How the names of this process's folders tell whose they are. */
let own: string | undefined

/** Real paths of folders for temporary files, the best first. */
async function* temporaryParents(): AsyncGenerator<string, void> {
  const parents: string[] = []
  for (const folder of [tmpdir(), process.env['XDG_RUNTIME_DIR'], '/dev/shm', homedir()]) {
    if (folder === undefined || folder === '') continue
    const real = await realpath(folder).catch(() => null)
    if (real === null || parents.includes(real)) continue
    parents.push(real)
    yield real
  }
}

/** A folder for temporary files that doesn't lie in `folder`. */
export async function parentOutside(folder: string): Promise<string> {
  const isOutside = (path: string): boolean => path !== folder && !path.startsWith(folder + sep)
  for await (const parent of temporaryParents()) if (isOutside(parent)) return parent
  return folder === dirname(folder) ? tmpdir() : dirname(folder)
}

/** Folders of processes that have ended. Those of other containers are not known to have. */
export async function abandonedFolders(
  parents: Iterable<string> | AsyncIterable<string> = temporaryParents(),
): Promise<readonly string[]> {
  const found: string[] = []
  for await (const parent of parents) {
    for (const name of await readdir(parent).catch(() => [])) {
      if (!isAbandoned(name)) continue
      const path = join(parent, name)
      const stats = await lstat(path).catch(() => null)
      // Another user could name a folder so.
      if (stats?.isDirectory() === true && stats.uid === process.geteuid?.()) found.push(path)
    }
  }
  return found
}

function isAbandoned(name: string): boolean {
  const [, numbered, pid, started] = NAME.exec(name) ?? []
  if (numbered !== namespace()) return false
  return !isRunning(Number(pid), started === '0' ? null : started!)
}

function namespace(): string {
  return /\d+/.exec(pidNamespace() ?? '')?.[0] ?? '0'
}
