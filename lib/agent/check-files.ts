/**
 * What a check was seen to rest on, as the log stores it, and as it is shown.
 *
 * @module
 */
/** What the dependencies of a workspace were; a JSON value. All paths are relative. */
export interface Dependencies {
  /** Time of the file system, in ms: what changed after they were looked at is no older. */
  readonly since: number
  /** Folders with dependencies; `../node_modules` for packages found above the workspace. */
  readonly folders: readonly string[]
  /** The SHA-256 of each package, as base64url; null when there was too much to hash. */
  readonly packages: { readonly [path: string]: string } | null
  /** What shows that nobody touched a package: of its inodes, sizes, modes and change times. */
  readonly marks: { readonly [path: string]: string }
  /** The same of what lies in caches. */
  readonly caches: { readonly [path: string]: string }
  /** Does each folder count as one package, because there are too many? */
  readonly isCoarse: boolean
}

/** What git knows of a folder. */
export interface GitState {
  /** Hashes of the paths in its index, of ten characters each. */
  readonly tracked: string
  /** Paths that it is told to take for unchanged. */
  readonly hidden: readonly string[]
  /** SHA-256 of `.gitattributes`, or why there is none. */
  readonly attributes: string
}

/** What git told a check at the start, beside its index. */
export interface AskedOfGit {
  /** Names of objects, by commit and path: `main:want.txt`. */
  readonly committed: { readonly [question: string]: string }
  /** Files that are in no commit and that git was not told to ignore. */
  readonly untracked: readonly string[]
}

/** What was found by one check. Those of later checks add files to the first. */
export interface StoredSeal {
  /** Why each file belongs to the check, by path; for those that no pattern names. */
  readonly reasons: { readonly [path: string]: string }
  /** Their SHA-256, in the form of `GoalBaseline.files`. */
  readonly files: { readonly [path: string]: string }
  /** Of the first check only: what else later sealed checks need. */
  readonly start?: SealStart
}

/** What a file of the workspace does to a test runner in its own memory. */
export interface Deed {
  /** `beforeEach`, `Module._load`. */
  readonly what: string
  /** Relative to the workspace; null where nobody knows. */
  readonly file: string | null
}

/** What the first check found. */
export interface SealStart {
  /** The file system's time, in ms, after which a change is one of the run's. */
  readonly since: number
  /** When these were changed, in ms; absent in runs of earlier versions. */
  readonly times?: { readonly [path: string]: number }
  /** What was done to the runner before the run changed anything; absent for nothing. */
  readonly deeds?: readonly Deed[]
  /** For a check that asks git. */
  readonly git?: GitState
  readonly asked?: AskedOfGit
  /** For a check that is a compiler or linter: how often each way to silence it is found. */
  readonly silencing?: { readonly [mark: string]: number }
  /** SHA-256 of settings above the folder that those in it name, by relative path. */
  readonly above?: { readonly [path: string]: string }
  /** Null when there was nothing to compare with. */
  readonly dependencies: Dependencies | null
  /** Files that the runner reported at the first check, and that no pattern names. */
  readonly tests?: readonly string[]
  /** The state of each file that checkpoints leave out, by path; absent where it is not known. */
  readonly leftOut?: { readonly [path: string]: string }
  /** The state of every file, by path, if the run has no checkpoints. */
  readonly files?: { readonly [path: string]: string }
  /** Why sealed checks are not made; null when they are. */
  readonly unavailable: string | null
  /**
   * Set as long as no check was made in a copy: the first one that passes in place is followed by a
   * check of the files of the start in a copy, which finds what the other fields lack.
   */
  readonly pending?: PendingSeal
}

/** The result of a first check that ran only in place. */
export interface PendingSeal {
  /** Why the suite could not be run in place either, as a phrase; null if it could. */
  readonly lacks: string | null
  /** In runs of earlier versions: see {@link SealStart.leftOut}. */
  readonly leftOut?: { readonly [path: string]: string }
}

/** The files of a run as they were at its start, as far as they were stored. */
export interface FilesAtStart {
  /** Of one file: its SHA-256, null when it did not exist, undefined if not known. */
  hashOf(path: string): Promise<string | null | undefined>
  /** Of those whose content is stored: their SHA-256, by path. */
  stored(paths: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Makes stored files in a folder where they are missing; gives those that it made. */
  restore(folder: string, paths: readonly string[]): Promise<readonly string[]>
  /** Files that are not as at the start, with new ones that are not stored; null if not known. */
  changed(): Promise<readonly ChangedFile[] | null>
  /** How a copy of the folder gets the files of the start; null if they are not known. */
  rewind(): Promise<Rewind | null>
}

/** The way from the folder as it is now to its files at the start. All paths are relative. */
export interface Rewind {
  /** Paths to omit from the copy. */
  readonly without: readonly string[]
  /** Files of the start whose content is not stored. */
  readonly lost: readonly string[]
  /** Paths in the folder that checkpoints leave out; null if the list is incomplete. */
  readonly leftOut: readonly string[] | null
  /** Completes such a copy; resolves with the paths of what it created. */
  complete(copy: string): Promise<readonly string[]>
}

/** A file that is not as at the start. */
export interface ChangedFile {
  readonly path: string
  /** True if the start did not have it. */
  readonly isNew: boolean
  /** True if the folder has it no more. */
  readonly isGone: boolean
}

/** The files that the run has changed, by path, grouped by how a passed sealed check used them. */
export interface CheckedFiles {
  /** Read as the run left them; null where the file system does not tell what was read. */
  readonly verified: readonly string[] | null
  /** New tests and their helpers: the check passes without them, and with them. */
  readonly added: readonly string[]
  /** The check passes with these as at the start, and without the new ones of them. */
  readonly held_back: readonly string[]
  /** Tests of the start that the run has edited: `added`, or let be changed by the request. */
  readonly changed_tests?: readonly string[]
  /** Files of the check that the request lets the run change. */
  readonly allowed?: readonly string[]
}

/** One file that belongs to the check of a run. */
export interface CheckFile {
  /** Relative to the folder of the run. */
  readonly path: string
  readonly reason: string
}

/** What belongs to the check of a run, as clients get it. */
export interface CheckFiles {
  readonly files: readonly CheckFile[]
  /** True when the first check was seen to read files; otherwise they are known by name alone. */
  readonly observed: boolean
  /** Why the run has no sealed checks; null when it has. */
  readonly sealed_unavailable: string | null
}

/** See {@link CheckedFiles}; `not_read`: the check never reads the file. */
export type FileGroup = 'verified' | 'added' | 'held_back' | 'not_read'

/** Held-back files that details and events name. */
const MAX_SHOWN = 100

/** The files of a list that details and events name. */
export function shownOf(paths: readonly string[]): readonly string[] {
  return paths.slice(0, MAX_SHOWN)
}

/** All of what was found so far. */
export function joinSeals(before: StoredSeal | null, more: StoredSeal): StoredSeal {
  if (before === null) return more
  return {
    reasons: { ...before.reasons, ...more.reasons },
    files: { ...before.files, ...more.files },
    ...((more.start ?? before.start) && { start: (more.start ?? before.start)! }),
  }
}
