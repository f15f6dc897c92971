/**
 * Schemas of what a run did to its folder. The compiler checks that they have the fields of the
 * engine's types, and no others.
 *
 * @module
 */
import type {
  ApplyResult,
  CheckFile,
  CheckFiles,
  Checkpoint,
  FileEntry,
  FileGroup,
  FileList,
  JsonSchema,
  NetChange,
  NetChanges,
  RestoreResult,
} from '../../agent/index.js'
import {
  CHECKPOINT_REASON,
  count,
  fields,
  flag,
  LEFT_OUT,
  listOf,
  memberOf,
  oneOf,
  orNull,
  text,
} from './fields.js'

const path: JsonSchema = {
  ...text,
  description:
    'relative, with forward slashes; a byte that is not UTF-8 is the lone surrogate U+DC00 + byte',
}

const checkpointId: JsonSchema = { ...text, description: 'SHA-256 in hexadecimal' }

/** What belongs to the check of a run. */
export const CHECK_FILES: JsonSchema = fields<CheckFiles>({
  files: listOf(fields<CheckFile>({ path, reason: text })),
  observed: { ...flag, description: 'false: they are known by their names alone' },
  sealed_unavailable: orNull(text),
})

export const CHECKPOINT: JsonSchema = fields<Checkpoint>({
  checkpoint_id: { ...checkpointId, description: 'of equal trees it is equal' },
  seq: { ...count, description: 'of the event that reports it' },
  iteration: count,
  reason: CHECKPOINT_REASON,
  files: count,
  bytes: count,
  left_out: listOf(LEFT_OUT),
})

const change: JsonSchema = fields<NetChange>({
  path,
  old_path: orNull(path),
  status: oneOf('added', 'modified', 'deleted', 'renamed'),
  additions: count,
  deletions: count,
  binary: flag,
  mode: fields<NetChange['mode']>({ before: orNull(text), after: orNull(text) }),
  diff: {
    ...orNull(text),
    description: 'null when left out: too large, or its content is not stored',
  },
  redacted: { ...flag, description: 'the diff does not show a secret that the file holds' },
  group: {
    ...orNull(memberOf<FileGroup>({
      verified: true, not_read: true, added: true, held_back: true,
    })),
    description: 'what the newest verdict has to do with the file; null: it was not sealed',
  },
})

export const NET_CHANGES: JsonSchema = fields<NetChanges>({
  from: { ...orNull(checkpointId), description: 'null: nothing was kept' },
  to: { ...orNull(text), description: 'a checkpoint id, or `now`' },
  changes: listOf(change),
  more: { ...count, description: 'changes beyond those listed' },
  left_out: listOf(LEFT_OUT),
  note: { ...orNull(text), description: 'why there may be changes that are not listed' },
})

export const FILE_LIST: JsonSchema = fields<FileList>({
  path,
  at: { ...text, description: 'a checkpoint id, or `now`' },
  entries: listOf(
    fields<FileEntry>({
      path,
      type: oneOf('file', 'folder', 'link'),
      size: count,
      mode: text,
    }),
  ),
  more: { ...count, description: 'entries beyond those listed' },
})

const skipped = {
  ...listOf(path),
  description: 'left alone, because somebody else changed them meanwhile',
}

export const RESTORE_RESULT: JsonSchema = fields<RestoreResult>({
  restored: checkpointId,
  checkpoint_id: { ...checkpointId, description: 'restoring this one takes the restore back' },
  paths: listOf(path),
  skipped,
  left_out: listOf(LEFT_OUT),
})

export const APPLY_RESULT: JsonSchema = fields<ApplyResult>({
  applied: listOf(path),
  merged: { ...listOf(path), description: 'those in which the lines of both sides were merged' },
  skipped,
  conflicts: { ...listOf(path), description: 'with `force` or `dry_run`: changed by both sides' },
  held_back: { ...listOf(path), description: 'left out: the verdict does not cover them' },
  checkpoint_id: { ...orNull(checkpointId), description: 'the folder before; null for dry_run' },
})

export const MESSAGE_RESULT: JsonSchema = fields<{ readonly message_id: string }>({
  message_id: text,
})
