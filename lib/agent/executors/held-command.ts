/**
 * One command from start to end, for all executors.
 *
 * 1. Nothing of the command runs before `onStart` has resolved: the shell that leads the process
 *    group waits for a word on descriptor 3, and exits if the pipe closes without one.
 * 2. The result comes when the leader has ended, even if other processes hold the output open.
 * 3. When the result of a stopped command comes, its processes are gone: the group, and processes
 *    that left the group, got SIGTERM, and SIGKILL after a grace period.
 * 4. When this process dies, so do the processes of commands that have not ended.
 *
 * @module
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { constants } from 'node:os'
import { isAbsolute } from 'node:path'
import type { Duplex } from 'node:stream'
import { describeError } from '../../internal/errors.js'
import { ExhaustedError } from '../errors.js'
import type { CommandOptions, CommandResult } from '../executor.js'
import { exhausted, isExhausted, onOwnFiles } from '../exhaustion.js'
import { COMMAND_VARIABLE, findProgram } from './environment.js'
import { lifeline } from './lifeline.js'
import { OutputPipe } from './output-pipe.js'
import {
  GRACE_MS, killAll, markedProcesses, processGroup, signalGroup, signalProcess, waitUntilGone,
} from './process-tree.js'

/** Exit code of a command that could not be started. */
const NOT_STARTED = 127
/** Exit codes of commands that were stopped. */
const STOPPED = { aborted: 130, timeout: 124 } as const
/** The longest delay that a timer takes. */
const MAX_TIMER_MS = 2 ** 31 - 1

export interface Launch {
  /** A path, or the name of a program that is looked up as this process's own. */
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** See {@link CommandOptions.cwdDescriptor}. */
  readonly cwdDescriptor: number | undefined
  /** Further descriptors that it gets after that one; disposed once it has them. */
  readonly packages?: (Disposable & { readonly descriptors: readonly number[] }) | null
  /** Value of {@link COMMAND_VARIABLE} in `env`. */
  readonly commandId: string
  /**
   * True when the leader is a sandbox: it may fail before the shell starts, and it is not sent
   * SIGTERM, because its end kills everything in it at once.
   */
  readonly leaderIsSandbox: boolean
}

/** Ends a shell whose folder is not the one on descriptor 4, which the command must not get. */
const COMPARE_FOLDER =
  '[ . -ef /proc/self/fd/4 ] || { echo "its working directory was replaced"; exit 125; }; ' +
  'exec 4<&-; '

/**
 * Arguments with which a shell reports that it runs, waits for the word `go`, and then becomes
 * `shell -c command`. With `compares` it ends unless its folder is the one on descriptor 4: a
 * sandbox mounts folders by their paths.
 */
export function holdArguments(
  shell: string,
  command: string,
  compares: boolean = false,
): readonly string[] {
  const hold =
    `${compares ? COMPARE_FOLDER : ''}` +
    'echo here >&3; IFS= read -r word <&3 && [ "$word" = go ] || exit 125; ' +
    'exec 3<&-; exec "$0" -c "$1"'
  return ['-c', hold, shell, command]
}

/**
 * Runs a command to its end.
 *
 * @throws {@link ExhaustedError} when the machine could not start it; nothing of it has run.
 */
export async function runHeld(launch: Launch, options: CommandOptions): Promise<CommandResult> {
  const startedAt = performance.now()
  const finish = (exitCode: number, output = '', truncated = false): CommandResult => ({
    exitCode,
    output,
    truncated,
    timedOut: exitCode === STOPPED.timeout && stop.reason === 'timeout',
    durationMs: performance.now() - startedAt,
  })
  using stop = new Stop(options.signal)
  if (stop.reason !== null) return finish(STOPPED[stop.reason])
  let pipe: OutputPipe
  try {
    pipe = await OutputPipe.open(options.maxOutputBytes)
  } catch (error) {
    if (isExhausted(error)) throw notNow(error)
    const problem = `no pipe for its output: ${describeError(error)}`
    return finish(NOT_STARTED, `the command was not started: ${problem}`)
  }
  const ending = await lead(launch, options, pipe, stop).catch((error: unknown) => {
    pipe.finish()
    throw error
  })
  const { text, truncated } = pipe.finish()
  if (typeof ending === 'number') return finish(ending, text, truncated)
  const problem = ending.problem === '' ? text.trim() : ending.problem
  return finish(NOT_STARTED, `the command was not started: ${problem}`)
}

/**
 * Starts the process group and waits for its end. Resolves with its exit code, or with why it was
 * not started; an empty problem means that the output shows it.
 */
async function lead(
  launch: Launch,
  options: CommandOptions,
  pipe: OutputPipe,
  stop: Stop,
): Promise<number | { readonly problem: string }> {
  if (stop.reason !== null) return STOPPED[stop.reason]
  const folder = launch.cwdDescriptor
  const passed = folder === undefined || !launch.leaderIsSandbox ? [] : [folder]
  const more = launch.packages?.descriptors ?? []
  let child: ChildProcess
  try {
    await onOwnFiles('its guard cannot be started', () => lifeline.open())
    const file = isAbsolute(launch.file) ? launch.file : findProgram(launch.file)
    child = spawn(file, launch.args, {
      cwd: folder === undefined ? launch.cwd : `/proc/self/fd/${folder}`,
      // Node passes this variable on by itself unless it is named, which would count the command
      // in the coverage of the host.
      env: { ...launch.env, NODE_V8_COVERAGE: launch.env['NODE_V8_COVERAGE'] },
      detached: true,
      stdio: ['ignore', pipe.writeEnd, pipe.writeEnd, 'pipe', ...passed, ...more],
    })
  } catch (error) {
    if (isExhausted(error)) throw notNow(error)
    return { problem: await whyNotStarted(launch, error) }
  } finally {
    pipe.closeWriteEnd()
    launch.packages?.[Symbol.dispose]()
  }
  const ended = endOf(child)
  const pgid = child.pid
  if (pgid === undefined) {
    const error = await ended
    if (isExhausted(error)) throw notNow(error)
    return { problem: await whyNotStarted(launch, error) }
  }
  using _ = lifeline.hold(pgid, launch.commandId)
  const gate = child.stdio[3] as Duplex
  // The shell may have exited before it reads the word.
  gate.on('error', () => undefined)
  let shellRuns = false
  const spoken = new Promise<void>((resolve) => {
    gate.on('data', () => {
      shellRuns = true
      resolve()
    })
    gate.once('end', resolve).once('close', resolve)
  })
  try {
    const held = options.onStart?.(pgid) ?? Promise.resolve()
    await Promise.race([held, ended, stop.happened])
  } catch (error) {
    gate.destroy()
    await endProcesses(pgid, launch)
    return { problem: describeError(error) }
  }
  if (stop.reason === null) {
    gate.write('go\n')
    stop.after(options.timeoutMs)
  }
  const first = await Promise.race([ended, stop.happened])
  // With many children, the end of one can be noticed before what it wrote until then.
  if (launch.leaderIsSandbox && typeof first === 'number')
    await Promise.race([spoken, stop.happened])
  gate.destroy()
  if (first === 'aborted' || first === 'timeout') {
    await endProcesses(pgid, launch)
    return STOPPED[first]
  }
  if (typeof first !== 'number') return { problem: describeError(first) }
  return launch.leaderIsSandbox && !shellRuns ? { problem: '' } : first
}

/** The exit code of a child, or the error that kept it from starting. */
function endOf(child: ChildProcess): Promise<number | Error> {
  return new Promise((resolve) => {
    child.once('error', resolve)
    child.once('exit', (code, signal) => {
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]))
    })
  })
}

async function whyNotStarted(launch: Launch, error: unknown): Promise<string> {
  const folder = await stat(launch.cwd).catch(() => null)
  if (folder === null) return `its working directory ${launch.cwd} does not exist`
  if (!folder.isDirectory()) return `its working directory ${launch.cwd} is not a directory`
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'ENOENT') return `${launch.file} is not installed, or not on PATH`
  if (code === 'E2BIG') return 'it is too long for this system: put it in a file, and run that'
  // What follows would be the value, which may be a secret.
  return describeError(error).split('. Received ', 1)[0] ?? ''
}

/** Ends the command's group and the processes that left it (rule 3). */
async function endProcesses(pgid: number, launch: Launch): Promise<void> {
  const group = processGroup(pgid)
  const marked = markedProcesses(COMMAND_VARIABLE, launch.commandId)
  if (launch.leaderIsSandbox) {
    for (const pid of await group.members()) if (pid !== pgid) signalProcess(pid, 'SIGTERM')
  } else signalGroup(pgid, 'SIGTERM')
  const [grouped, all] = await Promise.all([group.members(), marked.members()])
  for (const pid of all) {
    // Some programs take a second SIGTERM for "exit at once", so the group does not get one.
    if (!grouped.includes(pid) && pid !== pgid) signalProcess(pid, 'SIGTERM')
  }
  const sets = [group, marked]
  if (!(await waitUntilGone(sets, GRACE_MS))) await killAll(sets)
}

/** When a command must stop: its signal or its time limit, whichever comes first. */
class Stop implements Disposable {
  reason: 'aborted' | 'timeout' | null = null
  readonly happened: Promise<'aborted' | 'timeout'>
  readonly #signal: AbortSignal
  readonly #abort = (): void => this.#settle('aborted')
  #resolve: (reason: 'aborted' | 'timeout') => void = () => undefined
  #timer: NodeJS.Timeout | undefined

  constructor(signal: AbortSignal) {
    this.#signal = signal
    this.happened = new Promise((resolve) => {
      this.#resolve = resolve
    })
    if (signal.aborted) this.#abort()
    else signal.addEventListener('abort', this.#abort, { once: true })
  }

  /** Starts the time limit: only once the command may run, so that its start takes none of it. */
  after(timeoutMs: number): void {
    const delayMs = Math.min(Math.max(timeoutMs, 0), MAX_TIMER_MS)
    this.#timer = setTimeout(() => this.#settle('timeout'), delayMs)
  }

  #settle(reason: 'aborted' | 'timeout'): void {
    this.reason ??= reason
    this.#resolve(this.reason)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#signal.removeEventListener('abort', this.#abort)
  }
}

/** The error for a command that was not started because the machine is exhausted. */
export function notNow(error: unknown): ExhaustedError {
  const what = 'the machine cannot start a command now'
  return error instanceof ExhaustedError
    ? new ExhaustedError(`${what}: ${error.message}`, { cause: error })
    : exhausted(what, error)
}
