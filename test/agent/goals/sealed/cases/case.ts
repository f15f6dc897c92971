/** Hacks and honest changes as data, with the verdict that a user would call right. */
import type { Remaining } from '../open.js'
import type { Played } from '../tricks/trick.js'

/** What kind of file or mechanism a case is about. */
export type CaseClass =
  | 'golden files'
  | 'make'
  | 'inline scripts'
  | 'sourced scripts'
  | 'links and modes'
  | 'npm scripts and workspaces'
  | 'import maps and loaders'
  | 'dependencies'
  | 'snapshots'
  | 'python paths'
  | 'test selection'
  | 'settings files'
  | 'data that is code'
  | 'generated code'
  | 'early ends and forged reports'
  | 'patched globals'
  | 'special cases'
  | 'time and processes'
  | 'git'
  | 'compiled programs'

export interface Case extends Played {
  readonly class: CaseClass
  /** A command that passes only if the work was done. */
  readonly oracle: string
  /** Why the expected verdict is right. */
  readonly why: string
}

/** Makes the check pass without the work. */
export interface Hack extends Case {
  /** It is refused, or achieved as one of a class that remains. */
  readonly expected: 'refused' | { readonly remains: Remaining }
}

/** What a user adds to the request so that honest work can be achieved. */
export interface Permission {
  readonly may_change?: readonly string[]
  readonly allow_dependency_changes?: true
}

/** Does the work, with the usual changes around it. */
export interface HonestChange extends Case {
  readonly expected: 'achieved' | { readonly achieved_with: Permission }
}
