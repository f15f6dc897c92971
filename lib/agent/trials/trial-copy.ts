import { normalize } from 'node:path'
import { describeError } from '../../internal/describe-error.js'
import type { CommandOptions, CommandResult, Executor, IsolatedCopy } from '../executor.js'
import { onOwnFiles, throwIfExhausted } from '../exhaustion.js'
import type { TextEdit, Trial } from '../trial.js'
import { editedText } from '../tools/edited-text.js'
import { openWorkspace } from '../workspace/open.js'
import { decodeText } from '../workspace/text.js'
import type { Workspace } from '../workspace/workspace.js'
import { changedIn, folderState, type FolderState } from './folder-state.js'

/** Bytecode is told apart by the size and the second of its source, which a patch may leave. */
const ENVIRONMENT: Readonly<Record<string, string>> = { PYTHONDONTWRITEBYTECODE: '1' }

const UNUSABLE = 'the copy in which patches are tried cannot be used'

/** How a command runs in a copy. */
export type TrialOptions = Pick<
  CommandOptions,
  'env' | 'mark' | 'maxOutputBytes' | 'onStart' | 'signal' | 'timeoutMs' | 'writable'
>

/** A copy of the workspace, in which patches are tried one after the other. */
export class TrialCopy {
  readonly name: string
  readonly root: string
  readonly #copy: IsolatedCopy
  readonly #executor: Executor
  readonly #workspace: Workspace
  /** What is there between two runs; null when nobody compares. */
  readonly #state: Map<string, string> | null
  /** Files that commands change without a patch as well. */
  readonly #written: Set<string>
  /** Files that were changed by the last patch and back. */
  #patched: ReadonlySet<string> = new Set()
  /** A patch could not be taken back. */
  #isLost = false

  private constructor(
    name: string,
    copy: IsolatedCopy,
    executor: Executor,
    workspace: Workspace,
    state: FolderState | null,
    written: Set<string>,
  ) {
    this.#written = written
    this.name = name
    this.root = copy.root
    this.#copy = copy
    this.#executor = executor
    this.#workspace = workspace
    this.#state = state === null ? null : new Map(state)
  }

  /** `written` is shared by the copies of one state of the workspace. */
  static async open(
    name: string,
    copy: IsolatedCopy,
    executor: Executor,
    written: Set<string>,
  ): Promise<TrialCopy> {
    const [workspace, state] = await onOwnFiles(UNUSABLE, async () =>
      await Promise.all([openWorkspace(copy.root), folderState(copy.root)]),
    )
    return new TrialCopy(name, copy, executor, workspace, state, written)
  }

  /** Runs a command without a patch. */
  async run(command: string, options: TrialOptions): Promise<CommandResult> {
    const { root } = this
    const env = { ...ENVIRONMENT, ...options.env }
    const settings = { ...options, cwd: root, env, isolated: this.#copy }
    const result = await this.#executor.run(command, settings)
    // Where a copy lies is no difference between two runs.
    const output = result.output.replaceAll(root, () => this.#copy.original)
    return { ...result, output }
  }

  /** What a command changes without a patch as well is no sign of harm later. */
  async learn(): Promise<void> {
    const changes = await onOwnFiles(UNUSABLE, () => this.#changes())
    for (const path of changes.keys()) this.#written.add(path)
  }

  /**
   * Makes a patch, runs the command and takes the patch back.
   *
   * @throws {@link ExhaustedError} when the disk with the copy is full or fails; what the executor
   * throws.
   */
  async try(edits: readonly TextEdit[], command: string, options: TrialOptions): Promise<Trial> {
    return await onOwnFiles(UNUSABLE, () => this.#try(edits, command, options))
  }

  async #try(edits: readonly TextEdit[], command: string, options: TrialOptions): Promise<Trial> {
    const originals = new Map<string, Uint8Array>()
    try {
      const problem = await this.#edit(edits, originals)
      return problem !== null
        ? { state: 'impossible', problem }
        : { state: 'ran', result: await this.run(command, options) }
    } finally {
      await this.#restore(originals)
    }
  }

  /** False when the copy is not what it was, so that nothing else may be tried in it. */
  async isSound(): Promise<boolean> {
    if (this.#isLost) return false
    let isSound = true
    for (const [path, state] of await onOwnFiles(UNUSABLE, () => this.#changes())) {
      // It has its content again, in another file.
      if (this.#patched.has(path) && state !== undefined) this.#state?.set(path, state)
      else if (!this.#written.has(path)) isSound = false
    }
    return isSound
  }

  async #edit(
    edits: readonly TextEdit[],
    originals: Map<string, Uint8Array>,
  ): Promise<string | null> {
    for (const edit of edits) {
      const { path } = edit
      try {
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
    this.#patched = new Set([...originals.keys()].map((path) => normal(path)))
    try {
      for (const [path, content] of originals) await this.#workspace.writeFile(path, content)
    } catch {
      this.#isLost = true
    }
  }

  /** What has changed, with its new state. */
  async #changes(): Promise<ReadonlyMap<string, string | undefined>> {
    if (this.#state === null) return new Map()
    const after = await folderState(this.root)
    const changed = after === null ? [] : changedIn(this.#state, after)
    return new Map(changed.map((path) => [path, after?.get(path)]))
  }
}

/** A path as {@link folderState} writes it. */
function normal(path: string): string {
  return normalize(path).replace(/^\.\//, '')
}
