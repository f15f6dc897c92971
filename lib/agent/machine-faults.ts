/**
 * Codes of errors of the system that blame the machine, and what to do about them.
 *
 * 1. Resources: whoever meets one may succeed later, wherever it happens.
 * 2. A disk that fails: a fault of the machine where the engine keeps files of its own. What a
 *    run's folder answers is for the run.
 * 3. Access, and what is not there: the same, in places that no command can have changed.
 *
 * All others are bugs, such as `EBADF` and `EINVAL`: trying again would hide them.
 *
 * @module
 */

type Remedies = Readonly<Record<string, string>>

/** The process or the machine has none left. */
export const RESOURCES: Remedies = {
  EMFILE: 'this process has too many files open (raise `ulimit -n`)',
  ENFILE: 'the machine has too many files open',
  EAGAIN: 'no more processes can be started (raise `ulimit -u`)',
  ENOMEM: 'the machine is out of memory',
}

/** No room on a disk, which somebody may make. */
export const NO_SPACE: Remedies = {
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
}

const FAILS = 'the disk reports an error; check it'
const DAMAGED = 'the file system is damaged; check it'
const GONE = 'the device is gone; check it and mount it again'
const UNREACHABLE = 'the file system cannot be reached; check its server, or mount it again'

/** A disk without room, or that fails, or cannot be reached. */
export const DISK: Remedies = {
  ...NO_SPACE,
  EROFS: 'the file system is read-only; remount it for writing',
  EIO: FAILS,
  EREMOTEIO: FAILS,
  EUCLEAN: DAMAGED,
  EBADMSG: DAMAGED,
  ENODEV: GONE,
  ENXIO: GONE,
  ENOMEDIUM: GONE,
  ESTALE: UNREACHABLE,
  ENOTCONN: UNREACHABLE,
  ETIMEDOUT: UNREACHABLE,
  ECONNABORTED: UNREACHABLE,
  ECONNREFUSED: UNREACHABLE,
  ECONNRESET: UNREACHABLE,
  EHOSTDOWN: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETDOWN: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ENOLINK: UNREACHABLE,
  ESHUTDOWN: UNREACHABLE,
}

const DENIED = 'access is denied; grant this user write access'
const ABSENT = 'a folder is gone; make it again, or mount it again'

/** A place that denies access, or is gone. */
export const PLACE: Remedies = {
  EACCES: DENIED,
  EPERM: DENIED,
  ENOENT: ABSENT,
  ENOTDIR: ABSENT,
}

const ALL: Remedies = { ...RESOURCES, ...DISK, ...PLACE }

/** What the code means and what to do about it; undefined for one that blames no machine. */
export function remedyFor(code: string): string | undefined {
  return Object.hasOwn(ALL, code) ? ALL[code] : undefined
}
