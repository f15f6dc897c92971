import { realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { describeError } from '../../internal/errors.js'
import type { FairSlots } from '../../internal/queues.js'
import { makeTemporaryFolder, parentOutside } from '../../internal/processes.js'
import type { CommandOptions, CommandResult, Executor, IsolatedCopy } from '../executor.js'
import { elsewhere, inOwnPlace, onOwnFiles, throwIfExhausted } from '../exhaustion.js'
import type { ToolCommandOptions } from '../tool-command.js'
import { toolCommand } from '../tools/command-line.js'
import { editedText } from '../tools/edited-text.js'
import { removeFolder } from '../workspace/copy.js'
import { openWorkspace } from '../workspace/open.js'
import { decodeText } from '../workspace/text.js'
import type { Workspace } from '../workspace/workspace.js'
import { MAX_EDITS, type Edited, type TextEdit, type WorkspaceCopy } from '../workspace-copy.js'
import { changedIn, folderState } from './folder-state.js'

const UNUSABLE = 'the private copy of the workspace cannot be used'
const NO_FOLDER = 'the private folder for a copy of the workspace cannot be used'

/** The workspace of the run, and its own copy, if it works in one. */
export interface CopiedPlace {
  readonly cwd: string
  readonly isolated: IsolatedCopy | null
}

/** One call of a tool, as far as it concerns copies. */
export interface CopyCall extends Required<Pick<CommandOptions, 'onStart'>> {
  /** Aborts the call. */
  readonly stop: { readonly signal: AbortSignal }
  /** @throws when the run has no folder, or has lost it. */
  readonly place: () => Promise<CopiedPlace>
}

export interface OpenCopyOptions {
  readonly runId: string
  readonly copy: IsolatedCopy
  readonly executor: Executor
  readonly slots: FairSlots
  readonly version: number
  readonly remove: () => Promise<void>
}

/** A copy of a run's workspace, for any number of calls. */
export class OpenCopy {
  readonly #options: OpenCopyOptions
  readonly #workspace: Workspace
  /** State of each entry when the copy was made; null when it is not compared. */
  readonly #state: Map<string, string> | null
  /** Files that were edited and restored since the last comparison. */
  readonly #edited = new Set<string>()
  /** Edited files that could not be restored. */
  readonly #lost = new Set<string>()

  private constructor(
    options: OpenCopyOptions,
    workspace: Workspace,
    state: Map<string, string> | null,
  ) {
    this.#options = options
    this.#workspace = workspace
    this.#state = state
  }

  static async open(options: OpenCopyOptions): Promise<OpenCopy> {
    const { root } = options.copy
    const [workspace, state] = await onOwnFiles(UNUSABLE, async () =>
      await Promise.all([openWorkspace(root), folderState(root)]),
    )
    return new OpenCopy(options, workspace, state === null ? null : new Map(state))
  }

  async remove(): Promise<void> {
    await this.#options.remove()
  }

  ofCall(call: CopyCall): WorkspaceCopy {
    const { copy, remove, version } = this.#options
    return {
      root: copy.root,
      version,
      run: (command, options = {}) => this.#run(command, options, call),
      withEdits: (edits, work) => this.#withEdits(edits, work),
      changed: () => this.#changed(),
      withFolder: (work) => this.#withFolder(work),
      remove,
    }
  }

  async #run(
    command: string,
    options: ToolCommandOptions,
    { onStart, stop }: CopyCall,
  ): Promise<CommandResult> {
    const { copy, executor, runId, slots } = this.#options
    const { root } = copy
    const { signal } = stop
    const place = { root, runId, signal, onStart }
    const [line, settings] = toolCommand('copy.run()', command, options, place)
    const run = (): Promise<CommandResult> =>
      executor.run(line, { ...settings, isolated: copy })
    // The work of a private folder runs commands as well.
    const result = await elsewhere(() => slots.run(runId, run, settings.signal))
    return { ...result, output: result.output.replaceAll(root, () => copy.original) }
  }

  async #withEdits<T>(
    edits: readonly TextEdit[],
    work: () => Promise<T>,
  ): Promise<Edited<T>> {
    if (edits.length > MAX_EDITS) {
      throw new TypeError(`edits must be at most ${MAX_EDITS}, got ${edits.length}`)
    }
    const originals = new Map<string, Uint8Array>()
    try {
      const problem = await onOwnFiles(UNUSABLE, () => this.#edit(edits, originals))
      return problem === null ? { made: true, value: await work() } : { made: false, problem }
    } finally {
      await onOwnFiles(UNUSABLE, () => this.#restore(originals))
    }
  }

  async #edit(
    edits: readonly TextEdit[],
    originals: Map<string, Uint8Array>,
  ): Promise<string | null> {
    const { root } = this.#options.copy
    for (const edit of edits) {
      try {
        // One name for each file: its first content is the original.
        const path = relative(root, await this.#workspace.resolve(edit.path))
        const content = await this.#workspace.readFile(path)
        const { after, problem } = editedText(decodeText(content), edit)
        if (after === null) return problem
        if (!originals.has(path)) originals.set(path, content)
        await this.#workspace.writeFile(path, after)
      } catch (error) {
        throwIfExhausted(error)
        return describeError(error)
      }
    }
    return null
  }

  async #restore(originals: ReadonlyMap<string, Uint8Array>): Promise<void> {
    for (const [path, content] of originals) {
      const written = await this.#workspace.writeFile(path, content).catch(() => null)
      if (written === null) this.#lost.add(path)
      else this.#edited.add(path)
    }
  }

  async #changed(): Promise<readonly string[]> {
    const known = this.#state
    if (known === null) return [...this.#lost]
    const after = await onOwnFiles(UNUSABLE, () => folderState(this.#options.copy.root))
    const changed: string[] = []
    for (const path of after === null ? [] : changedIn(known, after)) {
      const state = after!.get(path)
      // It has its content again, in another file.
      if (this.#edited.has(path) && state !== undefined) known.set(path, state)
      else changed.push(path)
    }
    this.#edited.clear()
    return [...new Set([...this.#lost, ...changed])]
  }

  async #withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const { root } = this.#options.copy
    const folder = await inOwnPlace(NO_FOLDER, async () =>
      await realpath(await makeTemporaryFolder('check', await parentOutside(root))),
    )
    try {
      return await inOwnPlace(NO_FOLDER, () => work(folder))
    } finally {
      await removeFolder(folder).catch(() => undefined)
    }
  }
}
