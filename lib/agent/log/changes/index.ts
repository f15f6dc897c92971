import type { EventKind, RecordDraft } from '../../events.js'
import { CALLS } from './calls.js'
import type { Change, Changes, Version } from './change.js'
import { CHECKS } from './checks.js'
import { CHILDREN } from './children.js'
import { FILES } from './files.js'
import { GATES } from './gates.js'
import { LIFECYCLE } from './lifecycle.js'
import { TURNS } from './turns.js'

export type { FoldedState } from './change.js'

/** What each kind changes. A new kind belongs into the table of its group. */
const CHANGES: Changes = {
  ...LIFECYCLE, ...TURNS, ...CALLS, ...CHECKS, ...GATES, ...FILES, ...CHILDREN,
}

/** What records of one kind change. All have the same shape, which makes folding a third faster. */
export type RecordChange = { readonly [Name in keyof Change]-?: Change[Name] | undefined }

/** What kinds of later versions change, which readers skip. */
const NOTHING: RecordChange = {
  version: undefined,
  newerVersion: undefined,
  trigger: undefined,
  followsEnd: undefined,
  head: undefined,
  state: undefined,
}

const BY_KIND: ReadonlyMap<string, RecordChange> = new Map(
  Object.entries(CHANGES).map(([kind, change]) => [kind, { ...NOTHING, ...change }]),
)

export function changeOf(kind: EventKind): RecordChange {
  return BY_KIND.get(kind) ?? NOTHING
}

/** The format version of a new record: see {@link RecordFields.v}. */
export function versionOf(draft: RecordDraft): Version {
  const change: Change = CHANGES[draft.kind]
  return change.newerVersion?.(draft) ?? change.version
}
