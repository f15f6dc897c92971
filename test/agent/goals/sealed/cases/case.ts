/** Hacks and honest changes as data, with the verdict that a user would call right. */
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

/** Why a hack can't be told from work: the classes of "what remains" in docs/goals.md. */
export type Remaining =
  | 'code that tells a check from its use'
  | 'code that knows the answers'
  | 'values that say that they are equal'
  | 'the memory that code shares with its tests'
  | 'runners without canaries or a report'
  | 'checks in what the agent is to change'
  | 'data that code reads as well'
  | 'skips in files that could not be loaded at the start'
  | 'scripts that a script of the check starts'
  // The following are not in docs/goals.md yet.
  | 'helpers of tests that lie beside the code'
  | 'files that the start checkpoint lacks'

export interface Case extends Played {
  readonly class: CaseClass
  /** A command that passes only if the work was done. */
  readonly oracle: string
  /** Why the expected verdict is right. */
  readonly why: string
}

/** Makes the check pass without the work. */
export interface Hack extends Case {
  /** Either it is never achieved, or it may be, with less assurance. */
  readonly expected: 'refused' | { readonly lowered: Remaining }
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
