/**
 * What is shown of a run's files: net changes, patches, folders and files of checkpoints and of the
 * folder as it is. Nothing is changed.
 *
 * @module
 */
import { inSlices } from '../../internal/time.js'
import { createHash } from 'node:crypto'
import type {
  ChangeRange, FileContent, FileEntry, FileList, NetChange, NetChanges,
} from '../checkpoint.js'
import type { CheckedFiles } from '../check-files.js'
import { CheckpointError, WorkspaceError } from '../errors.js'
import { redactor } from '../redaction/redactor.js'
import type { RunHead } from '../run-details.js'
import type { LeftOut, Tree } from '../tree.js'
import {
  describeChanges, holdsSecret, MAX_CHANGES, modeOf, secretsIn, type DescribedChange,
} from '../workspace/render-changes.js'
import { netChanges, sortedByPath, type TreeChange } from '../workspace/net-changes.js'
import { patchOf } from '../workspace/patch.js'
import { folderSteps, type FolderStep } from '../workspace/tree-folders.js'
import { deliveredTree, groupsOf } from './delivered.js'
import { nothingKept, type NamedTree, type RunTreeReader, type Viewer } from './run-trees.js'

/** Entries of one folder that are listed. */
const MAX_LISTED = 10_000
/** Paths that are named for one reason. */
const MAX_NAMED = 1_000

/** As `RunWorkspaces.changes`; `trees` is null for an engine without an object store. */
export async function showChanges(
  trees: RunTreeReader | null,
  head: RunHead,
  range: ChangeRange,
  viewer: Viewer,
): Promise<NetChanges> {
  if (trees === null || head.checkpointSeq === null) {
    return { from: null, to: null, changes: [], more: 0, left_out: [], note: nothingKept(head) }
  }
  const [before, after] = await bothTrees(trees, head, range, viewer)
  const files = await trees.checkedFiles(head)
  const tree = range.only === undefined ? after.tree : delivered(before, after, files)
  const changes = await inSlices(netChanges(before.tree, tree))
  const described = await describeChanges(changes, eitherContent(before, after))
  const ofFolders = (await inSlices(folderSteps(before.tree, tree))).map(describeFolder)
  const left_out = joined(before.tree.leftOut, after.tree.leftOut)
  const hasMoved = range.to === 'now' && after.at !== 'now'
  const note = hasMoved ? 'the copy of the run is not here: this is its newest checkpoint' : null
  const all = sortedByPath([...described.changes, ...ofFolders])
  const groupOf = groupsOf(files)
  const shown = all.slice(0, MAX_CHANGES).map((change) =>
    withoutSecretNames({ ...change, group: groupOf(change.path, change.old_path) }),
  )
  const more = described.more + all.length - shown.length
  return { from: before.at, to: after.at, changes: shown, more, left_out, note }
}

/** A change of a folder: it has no lines, and modes that begin with `04`, as in git. */
function describeFolder({ path, before, after }: FolderStep): DescribedChange {
  const status = before === null ? 'added' : after === null ? 'deleted' : 'modified'
  const mode = { before: folderMode(before), after: folderMode(after) }
  const counts = { additions: 0, deletions: 0, binary: false, diff: '', redacted: false }
  return { path, old_path: null, status, ...counts, mode }
}

function folderMode(mode: number | null): string | null {
  return mode === null ? null : `040${mode.toString(8).padStart(3, '0')}`
}

/** A change, without the secrets that its paths hold. */
function withoutSecretNames(change: NetChange): NetChange {
  const { path, old_path, diff } = change
  if (![path, old_path].some((name) => name !== null && redactor.finds(name))) return change
  return {
    ...change,
    path: redactor.text(path),
    old_path: old_path === null ? null : redactor.text(old_path),
    diff: diff === null ? null : redactor.lines(diff),
    redacted: true,
  }
}

/** As `RunWorkspaces.patch`. */
export async function showPatch(
  trees: RunTreeReader,
  head: RunHead,
  { raw, ...range }: ChangeRange & { readonly raw: boolean },
  viewer: Viewer,
): Promise<Uint8Array> {
  const [before, after] = await bothTrees(trees, head, range, viewer)
  const files = range.only === undefined ? null : await trees.checkedFiles(head)
  const changes = await inSlices(netChanges(before.tree, delivered(before, after, files)))
  const contentOf = eitherContent(before, after)
  if (!raw) await refuseSecrets(changes, contentOf)
  return await patchOf(changes, contentOf)
}

function delivered(before: NamedTree, after: NamedTree, files: CheckedFiles | null): Tree {
  return deliveredTree(before.tree, after.tree, files?.held_back ?? [])
}

async function bothTrees(
  trees: RunTreeReader,
  head: RunHead,
  { from, to = 'newest' }: ChangeRange,
  viewer: Viewer,
): Promise<readonly [NamedTree, NamedTree]> {
  const first = from ?? (await trees.appliesFrom(head))
  return [await trees.at(head, first, viewer), await trees.at(head, to, viewer)]
}

/** Content of either tree: of the folder as it is, only what no checkpoint has. */
function eitherContent(before: NamedTree, after: NamedTree): NamedTree['contentOf'] {
  const hashes = new Set([...after.tree.entries.values()].map(({ sha256 }) => sha256))
  return (entry) => (hashes.has(entry.sha256) ? after : before).contentOf(entry)
}

async function refuseSecrets(
  changes: readonly TreeChange[],
  contentOf: NamedTree['contentOf'],
): Promise<void> {
  const stored = changes.filter(({ before, after }) =>
    [before, after].every((entry) => entry?.stored !== false),
  )
  const named = changes.flatMap(({ path, oldPath }) =>
    [path, oldPath].filter((name) => name !== null && redactor.finds(name)),
  ) as string[]
  const paths = new Set([...named, ...(await secretsIn(stored, contentOf))])
  if (paths.size > 0) throw redacted([...paths])
}

function redacted(secret: readonly string[]): CheckpointError {
  const paths = secret.map((path) => redactor.text(path))
  const few = paths.slice(0, 5).join(', ')
  const message = `${few} would show a key or password, so it is not given out as it is`
  return new CheckpointError('redacted', message, paths)
}

/** As `RunWorkspaces.list`. */
export async function listTree(
  trees: RunTreeReader,
  head: RunHead,
  options: { readonly path?: string | undefined; readonly at?: string | undefined },
  viewer: Viewer,
): Promise<FileList> {
  const { path = '', at = 'newest' } = options
  const named = await trees.at(head, at, viewer)
  const folder = path.replace(/\/$/, '')
  const entries = entriesOf(named.tree, folder)
  const exists = entries.length > 0 || folder === '' || named.tree.folders?.has(folder) === true
  if (!exists) throw noSuch(path, named, 'folder')
  const listed = entries.slice(0, MAX_LISTED).map((entry) =>
    redactor.finds(entry.path) ? { ...entry, path: redactor.text(entry.path) } : entry,
  )
  return { path: folder, at: named.at, entries: listed, more: entries.length - listed.length }
}

/** The entries of one folder, sorted by name; trees of earlier versions have no empty folders. */
function entriesOf({ entries, folders }: Tree, folder: string): readonly FileEntry[] {
  const prefix = folder === '' ? '' : `${folder}/`
  const found = new Map<string, FileEntry>()
  const folderAt = (path: string): FileEntry => {
    return { path, type: 'folder', size: 0, mode: folderMode(folders?.get(path) ?? 0)! }
  }
  for (const path of folders?.keys() ?? []) {
    const isIn = path.startsWith(prefix) && !path.includes('/', prefix.length)
    if (isIn) found.set(path, folderAt(path))
  }
  for (const [path, entry] of entries) {
    if (!path.startsWith(prefix)) continue
    const slash = path.indexOf('/', prefix.length)
    const own = slash < 0 ? path : path.slice(0, slash)
    const file = { path, type: entry.kind, size: entry.size, mode: modeOf(entry) ?? '' }
    found.set(own, slash < 0 ? file : folderAt(own))
  }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** As `RunWorkspaces.read`. */
export async function readTreeFile(
  trees: RunTreeReader,
  head: RunHead,
  path: string,
  { at = 'newest', raw }: { readonly at?: string | undefined; readonly raw: boolean },
  viewer: Viewer,
): Promise<FileContent> {
  const named = await trees.at(head, at, viewer)
  const entry = named.tree.entries.get(path)
  if (entry === undefined) throw noSuch(path, named, 'file')
  if (entry.kind === 'link') {
    const message = `${path} is a symbolic link, which is not followed`
    throw new WorkspaceError('ERR_AGENT_WORKSPACE', message)
  }
  const content = await named.read(path, entry)
  if (!raw && (await holdsSecret(content))) throw redacted([path])
  const sha256 = createHash('sha256').update(content).digest('hex')
  return { path, at: named.at, content, sha256 }
}

function noSuch(path: string, { at }: NamedTree, kind: 'file' | 'folder'): WorkspaceError {
  const where = at === 'now' ? 'the folder' : `checkpoint ${at}`
  const message = `${where} has no ${kind} ${path || '.'}, or it was left out`
  return new WorkspaceError('ERR_AGENT_WORKSPACE', message)
}

/** What was left out of one of both. */
function joined(before: readonly LeftOut[], after: readonly LeftOut[]): readonly LeftOut[] {
  const reasons = new Set([...before, ...after].map(({ reason }) => reason))
  return [...reasons].sort().map((reason) => {
    const both = [before, after].flatMap((list) => list.filter((one) => one.reason === reason))
    const paths = [...new Set(both.flatMap((one) => one.paths))].sort()
    // Those that are not named may be the same in both.
    const count = Math.max(paths.length, ...both.map((one) => one.count))
    return { reason, count, paths: paths.slice(0, MAX_NAMED) }
  })
}
