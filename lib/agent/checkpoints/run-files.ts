/**
 * What runs do with their files by themselves: finishing what a kill cut off, and applying the
 * changes of an isolated run that has achieved its goal.
 *
 * @module
 */
import { describeError } from '../../internal/errors.js'
import { sleep } from '../../internal/time.js'
import { AgentError } from '../errors.js'
import { isTerminal } from '../events.js'
import { MachineWait, mayPass } from '../exhaustion.js'
import type { LogWriter } from '../log/writer.js'
import { warn } from '../output.js'
import type { RootsOf } from '../request/roots.js'
import type { RunDetails } from '../run-details.js'
import { applyChanges } from './apply-changes.js'
import { FileOperations } from './file-operations.js'
import type { CheckpointSettings } from './settings.js'
import type { Copies, RunFiles } from './run-logs.js'

/** What {@link EngineRunFiles} needs of its engine. */
export interface RunFilesSettings extends CheckpointSettings {
  readonly rootsOf: RootsOf
  readonly isolation: Copies | null
}

/** Milliseconds for which a run that has achieved its goal waits for the folder that was meant. */
const FOLDER_WAIT_MS = 60_000
const FOLDER_POLL_MS = 250
const WAITING = 'waiting to apply the changes: another run works in the folder'

/** See the comment of this file. */
export class EngineRunFiles implements RunFiles {
  readonly #settings: RunFilesSettings
  readonly #operations: FileOperations

  constructor(settings: RunFilesSettings) {
    this.#settings = settings
    this.#operations = new FileOperations(settings)
  }

  async finish(log: LogWriter, signal: AbortSignal): Promise<void> {
    await this.#operations.finish(log, signal, true)
    if (log.state.head.operation === null) await this.left(log.state.head.details)
  }

  async applyAchieved(
    log: LogWriter,
    hold: () => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<void> {
    const { details } = log.state.head
    if (!appliesItself(log) || details.changes !== null) return
    let isHeld = false
    const wait = new MachineWait()
    try {
      for (;;) {
        try {
          isHeld ||= await this.#waitFor(log, hold, signal)
          if (isHeld) return await this.#apply(log, signal)
          return this.#warn(log, 'another run works in the folder')
        } catch (error) {
          signal.throwIfAborted()
          if (log.hasFailed) throw error
          if (!mayPass(error)) {
            // A run that is stopped while it waits goes on later, or ends.
            if (!isHeld) throw error
            return this.#warnOf(log, error)
          }
          await wait.pause(error, signal, this.#settings.clock)
        }
      }
    } finally {
      wait.end()
    }
  }

  /** Errors of the host and of the system are for the host. */
  #warnOf(log: LogWriter, error: unknown): void {
    if (!(error instanceof AgentError)) warn(`run ${log.runId}: ${describeError(error)}`)
    this.#warn(log, error instanceof AgentError ? error.message : 'see the log of the host')
  }

  async #apply(log: LogWriter, signal: AbortSignal): Promise<void> {
    const { details, owner } = log.state.head
    const roots = await this.#settings.rootsOf(owner)
    const all = {
      paths: null, includesHeldBack: false, dryRun: false, force: false, by: null, waits: true,
    }
    await this.#operations.inFolder(details.cwd, roots, log, signal, (folder) =>
      applyChanges(this.#operations, folder, all),
    )
  }

  async #waitFor(
    log: LogWriter,
    hold: () => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (let waited = 0; waited <= FOLDER_WAIT_MS; waited += FOLDER_POLL_MS) {
      if (await hold()) return true
      if (waited === 0) this.#note(log, 'info', WAITING)
      await sleep(FOLDER_POLL_MS, signal, this.#settings.clock)
    }
    return false
  }

  #warn(log: LogWriter, problem: string): void {
    this.#note(log, 'warn', `the changes were not applied and stay pending: ${problem}`)
  }

  #note(log: LogWriter, level: 'info' | 'warn', message: string): void {
    const { iteration } = log.state.head.details
    log.note({ kind: 'log', iteration, payload: { level, message } })
  }

  async left(details: RunDetails): Promise<void> {
    const { run_id, status, workspace } = details
    if (!isTerminal(status) || workspace !== 'isolated' || needsCopy(details)) return
    // What cannot be removed now, a sweep removes.
    await this.#settings.isolation?.removeSoon(run_id).catch(() => undefined)
  }
}

/** Are the changes of the run applied when it achieves its goal? */
export function appliesItself({ state }: Pick<LogWriter, 'state'>): boolean {
  const { apply, workspace } = state.frozen.request
  return apply === 'on_achieved' && workspace === 'isolated'
}

/** May the copy of an isolated run still be needed? */
export function needsCopy({ role, status, changes }: RunDetails): boolean {
  if (changes === 'applied' || changes === 'discarded') return false
  // The changes of an attempt or a delegate are applied from its checkpoints.
  return role === 'root' || !isTerminal(status)
}
