import { checkOptions, checkString, type OptionKinds } from '../../internal/options.js'
import { WorkspaceError } from '../errors.js'
import { readConfined, replaceConfined } from './files.js'
import { FolderChanges } from './folder-changes.js'
import { listFolder, type ListOptions } from './list.js'
import { confine, confinePinned, locateRoot, type Confinement } from './paths.js'
import { PinnedFolder, type FolderIdentity } from './pinned-folder.js'
import type { FileChange, Workspace, WorkspaceEntry, WorkspaceOptions } from './workspace.js'

const OPTIONS: OptionKinds<WorkspaceOptions> = { roots: 'array', closed: 'array' }

const RESOLVE: OptionKinds<{ forWriting?: boolean }> = { forWriting: 'boolean' }
const READ: OptionKinds<{ maxBytes?: number }> = { maxBytes: 'number' }
const LIST: OptionKinds<Partial<ListOptions>> = {
  recursive: 'boolean', limit: 'number', onPassedOver: 'function',
}

/** Bytes of a file that is read, unless the caller sets another limit. */
const DEFAULT_READ_BYTES = 2 * 1024 * 1024
/** Bytes of a file that is written. */
const MAX_WRITE_BYTES = 16 * 1024 * 1024
const DEFAULT_LIST_LIMIT = 1_000

/**
 * Opens a folder as a workspace. It holds no resources, so it need not be closed.
 *
 * @throws {@link WorkspaceError} when `cwd` does not exist, is not a directory, lies outside
 * `options.roots` or inside a closed folder.
 */
export async function openWorkspace(
  cwd: string,
  options: WorkspaceOptions = {},
): Promise<Workspace> {
  checkOptions(options, OPTIONS, 'openWorkspace()')
  checkString('cwd', cwd)
  const confinement = await confine(cwd, options.roots, options.closed ?? [])
  return new ConfinedWorkspace(confinement)
}

/** A workspace whose folder is pinned until `folder` is closed. */
export interface PinnedWorkspace {
  readonly workspace: Workspace
  readonly folder: PinnedFolder
}

/**
 * Opens a folder by its real path and pins it.
 *
 * @param before what it was recognised by when an earlier process worked in it
 * @param onLost called once, when the folder is lost
 * @throws {@link WorkspaceError}: `ERR_AGENT_WORKSPACE_LOST` when it is not there, or not the same
 * as before; otherwise as {@link openWorkspace} does.
 */
export async function openPinned(
  cwd: string,
  options: WorkspaceOptions,
  before: FolderIdentity | null,
  onLost: (error: WorkspaceError) => void,
): Promise<PinnedWorkspace> {
  const folder = await PinnedFolder.open(cwd, before, onLost)
  try {
    const confinement = await confinePinned(folder, options.roots, options.closed ?? [])
    return { folder, workspace: new ConfinedWorkspace(confinement, () => folder.check()) }
  } catch (error) {
    await folder[Symbol.asyncDispose]()
    throw error
  }
}

/**
 * The real path of a directory that must lie in one of `roots`, by real path. Roots that do not
 * exist are skipped. A path outside is reported as outside, whether it exists or not.
 *
 * @throws {@link WorkspaceError} with `ERR_AGENT_OUTSIDE_WORKSPACE` when it lies outside the roots,
 * with `ERR_AGENT_WORKSPACE` when it does not exist, is not a directory or cannot be entered.
 */
export async function resolveUnderRoots(
  path: string,
  roots: readonly string[],
): Promise<string> {
  return await locateRoot(path, roots)
}

class ConfinedWorkspace implements Workspace {
  readonly root: string
  readonly #confinement: Confinement
  readonly #changes: FolderChanges
  /** The scan that runs or ran last; scans do not overlap. */
  #scan: Promise<unknown> = Promise.resolve()

  /** Called before each use of the folder; throws when it must not be used. */
  readonly #check: () => Promise<void>

  constructor(confinement: Confinement, check: () => Promise<void> = () => Promise.resolve()) {
    this.#check = check
    this.root = confinement.root
    this.#confinement = confinement
    this.#changes = new FolderChanges(confinement)
  }

  async changes(): Promise<readonly FileChange[]> {
    await this.#check()
    const scan = this.#scan.then(() => this.#changes.changes())
    this.#scan = scan.catch(() => undefined)
    return await scan
  }

  async resolve(path: string, options: { readonly forWriting?: boolean } = {}): Promise<string> {
    checkOptions(options, RESOLVE, 'resolve()')
    await this.#check()
    const { real } = await this.#confinement.locate(path, options.forWriting ?? false)
    return real
  }

  async readFile(path: string, options: { readonly maxBytes?: number } = {}): Promise<Uint8Array> {
    checkOptions(options, READ, 'readFile()')
    await this.#check()
    return await readConfined(this.#confinement, path, options.maxBytes ?? DEFAULT_READ_BYTES)
  }

  async writeFile(path: string, content: Uint8Array | string): Promise<FileChange> {
    const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : content
    if (bytes.length > MAX_WRITE_BYTES) {
      throw new WorkspaceError(
        'ERR_AGENT_WORKSPACE',
        `${path} would have ${bytes.length} bytes, more than the limit of ${MAX_WRITE_BYTES}`,
      )
    }
    await this.#check()
    return await replaceConfined(this.#confinement, path, bytes)
  }

  async list(
    path: string,
    options: Partial<ListOptions> = {},
  ): Promise<readonly WorkspaceEntry[]> {
    checkOptions(options, LIST, 'list()')
    const { recursive = false, limit = DEFAULT_LIST_LIMIT } = options
    await this.#check()
    return await listFolder(this.#confinement, path, { ...options, recursive, limit })
  }
}
