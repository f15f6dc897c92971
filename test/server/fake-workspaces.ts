import { createHash } from 'node:crypto'
import {
  CheckpointError,
  InvalidRequestError,
  WorkspaceError,
  type Checkpoint,
  type FileEntry,
  type NetChange,
  type RunWorkspaces,
} from 'runwright/agent'

/** The checkpoint that a fake run has. */
export const START: string = 'a'.repeat(64)
export const NEWEST: string = 'b'.repeat(64)

/** What the service calls, with its arguments; a run that the caller may not see throws. */
export type Enter = (runId: string, caller: Parameters<RunWorkspaces['discard']>[1]) => void

/**
 * The folders of all fake runs: one set of files, the same at any time. `secrets` names those that
 * hold secrets.
 */
export class FakeWorkspaces implements RunWorkspaces {
  readonly files: Map<string, Buffer> = new Map([
    ['readme.md', Buffer.from('hello\n')],
    ['src/main.js', Buffer.from('console.log(1)\n')],
    ['keys.txt', Buffer.from('hunter2\n')],
  ])
  readonly secrets: Set<string> = new Set(['keys.txt'])
  readonly #enter: (method: string, ...rest: unknown[]) => void
  readonly #see: Enter

  constructor(enter: (method: string, ...rest: unknown[]) => void, see: Enter) {
    this.#enter = enter
    this.#see = see
  }

  readonly checkpoints: RunWorkspaces['checkpoints'] = async (runId, caller) => {
    this.#called('checkpoints', runId, caller)
    const facts = { files: this.files.size, bytes: 100, left_out: [] }
    const start: Checkpoint = {
      checkpoint_id: START, seq: 2, iteration: 0, reason: 'start', ...facts,
    }
    return [start, { ...start, checkpoint_id: NEWEST, seq: 9, iteration: 1, reason: 'end' }]
  }

  readonly changes: RunWorkspaces['changes'] = async (runId, range = {}, caller) => {
    this.#called('changes', runId, caller, range)
    return {
      from: idOf(range.from ?? 'start'),
      to: idOf(range.to ?? 'newest'),
      changes: [...this.files.keys()].map((path) => this.#change(path)),
      more: 0,
      left_out: [{ reason: 'secret', count: 1, paths: ['.env'] }],
      note: null,
    }
  }

  readonly patch: RunWorkspaces['patch'] = async (runId, range, caller) => {
    this.#called('patch', runId, caller, range)
    idOf(range.from ?? 'start')
    idOf(range.to ?? 'newest')
    if (!range.raw && this.secrets.size > 0) this.#refuse([...this.secrets])
    const texts = [...this.files].map(([path, content]) => [`+++ b/${path}\n+`, content])
    return Buffer.concat(texts.flat().map((part) => Buffer.from(part as string)))
  }

  readonly list: RunWorkspaces['list'] = async (runId, options = {}, caller) => {
    const { path = '', at = 'newest' } = options
    this.#called('list', runId, caller, { path, at })
    const id = idOf(at)
    if (path.split('/').includes('outside')) {
      throw new WorkspaceError('ERR_AGENT_OUTSIDE_WORKSPACE', `${path} leads outside`)
    }
    const below = path === '' ? '' : `${path}/`
    const names = new Map<string, FileEntry>()
    for (const [file, { length }] of this.files) {
      if (!file.startsWith(below)) continue
      const [name = '', ...rest] = file.slice(below.length).split('/')
      const type = rest.length > 0 ? 'folder' : 'file'
      const size = rest.length > 0 ? 0 : length
      names.set(name, { path: below + name, type, size, mode: '100644' })
    }
    if (names.size === 0) throw new WorkspaceError('ERR_AGENT_WORKSPACE', `${path} is no folder`)
    return { path, at: id, entries: [...names.values()], more: 0 }
  }

  readonly read: RunWorkspaces['read'] = async (runId, path, { at = 'newest', raw }, caller) => {
    this.#called('read', runId, caller, { path, at, raw })
    const id = idOf(at)
    const content = this.files.get(path)
    if (path.split('/').includes('outside')) {
      throw new WorkspaceError('ERR_AGENT_OUTSIDE_WORKSPACE', `${path} leads outside`)
    }
    if (content === undefined) {
      throw new WorkspaceError('ERR_AGENT_WORKSPACE', `${path} does not exist`)
    }
    if (!raw && this.secrets.has(path)) this.#refuse([path])
    const sha256 = createHash('sha256').update(content).digest('hex')
    return { path, at: id, content, sha256 }
  }

  readonly restore: RunWorkspaces['restore'] = async (runId, request, caller) => {
    this.#called('restore', runId, caller, request)
    const id = request['checkpoint_id']
    if (typeof id !== 'string') {
      throw new InvalidRequestError([{ pointer: '/checkpoint_id', detail: 'is required' }])
    }
    const paths = ['readme.md']
    return { restored: idOf(id), checkpoint_id: NEWEST, paths, skipped: [], left_out: [] }
  }

  readonly apply: RunWorkspaces['apply'] = async (runId, request, caller) => {
    this.#called('apply', runId, caller, request)
    const isDry = request['dry_run'] === true
    return {
      applied: [...this.files.keys()],
      merged: ['readme.md'],
      skipped: [],
      conflicts: [],
      held_back: [],
      checkpoint_id: isDry ? null : NEWEST,
    }
  }

  readonly discard: RunWorkspaces['discard'] = async (runId, caller) => {
    this.#called('discard', runId, caller)
  }

  #called(method: string, runId: string, caller: Parameters<Enter>[1], ...rest: unknown[]): void {
    this.#enter(method, runId, ...rest, caller)
    this.#see(runId, caller)
  }

  #change(path: string): NetChange {
    const mode = { before: null, after: '100644' }
    const redacted = this.secrets.has(path)
    const diff = redacted ? '+[redacted]\n' : `+${String(this.files.get(path))}`
    const counts = { additions: 1, deletions: 0, binary: false }
    return { path, old_path: null, status: 'added', ...counts, mode, diff, redacted, group: null }
  }

  #refuse(paths: readonly string[]): never {
    throw new CheckpointError('redacted', `${paths.join(', ')} holds secrets`, paths)
  }
}

function idOf(at: string): string {
  const ids: Record<string, string> = { start: START, newest: NEWEST, now: 'now' }
  const id = ids[at] ?? [START, NEWEST].find((known) => known === at)
  if (id === undefined) throw new CheckpointError('unknown', `there is no checkpoint ${at}`)
  return id
}
