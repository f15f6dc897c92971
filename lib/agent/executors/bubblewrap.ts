import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { CommandOptions, CommandResult, Executor } from '../executor.js'
import { COMMAND_VARIABLE, RUN_VARIABLE, scrubbedEnvironment } from './environment.js'
import { holdArguments, runHeld } from './held-command.js'
import { PROCESS_OPTIONS, processExecutor, type ProcessExecutorOptions } from './process.js'
import { killAll, markedProcesses } from './process-tree.js'
import { sandboxArguments } from './sandbox.js'

/** How {@link bubblewrapExecutor} confines commands. */
export interface BubblewrapOptions extends ProcessExecutorOptions {
  /**
   * Lets commands reach the network. Otherwise they only have a loopback interface of their own,
   * and cannot reach this service's API. @defaultValue false
   */
  readonly network?: boolean | undefined
  /** Further files and folders that commands may read, for example tool chains in a home folder. */
  readonly readOnly?: readonly string[] | undefined
  /** Folders that commands never see, even below readable or writable ones: the data folder. */
  readonly closed?: readonly string[] | undefined
}

const OPTIONS: OptionKinds<BubblewrapOptions> = {
  ...PROCESS_OPTIONS, network: 'boolean', readOnly: 'array', closed: 'array',
}

/**
 * Runs each command in a sandbox made by bubblewrap (`bwrap`, Debian's package `bubblewrap`): own
 * process, mount, host name and IPC namespaces, no capabilities, no network unless allowed.
 *
 * A command may write to its working directory, to `writable` folders of the call and to a private
 * `/tmp`; it may read system folders (`/usr`, `/bin`, `/lib`, `/opt` and a choice of `/etc`),
 * folders of `PATH`, known tool chains and `readOnly`. Nothing else exists there: no home folder,
 * no keys, no other processes, no sockets of other services. Its background processes end with it,
 * and all of them end when this process dies.
 */
export function bubblewrapExecutor(options: BubblewrapOptions = {}): Executor {
  checkOptions(options, OPTIONS, 'bubblewrapExecutor()')
  return new BubblewrapExecutor(options)
}

/**
 * The strongest executor that works here: bubblewrap when it is installed and the kernel lets it
 * create namespaces, else plain processes. Its `name` tells which.
 */
export async function autoExecutor(options: BubblewrapOptions = {}): Promise<Executor> {
  const problem = await bubblewrapProblem(options)
  if (problem === null) return bubblewrapExecutor(options)
  const { env, shell } = options
  return processExecutor({ env, shell })
}

/** Why bubblewrap cannot be used here, as a sentence for people; null when it works. */
export async function bubblewrapProblem(options: BubblewrapOptions = {}): Promise<string | null> {
  checkOptions(options, OPTIONS, 'bubblewrapExecutor()')
  if (process.platform !== 'linux') return 'bubblewrap needs Linux'
  const { exitCode, output } = await bubblewrapExecutor(options).run('true', {
    cwd: tmpdir(),
    env: {},
    timeoutMs: 10_000,
    maxOutputBytes: 2_000,
    mark: 'probe',
    writable: [],
    signal: new AbortController().signal,
  })
  if (exitCode === 0) return null
  return `bubblewrap does not work here: ${output.trim() || `exit code ${exitCode}`}`
}

class BubblewrapExecutor implements Executor {
  readonly name = 'bubblewrap'
  readonly #network: boolean
  readonly #readOnly: readonly string[]
  readonly #closed: readonly string[]
  readonly #env: readonly string[]
  readonly #shell: string

  constructor(options: BubblewrapOptions) {
    this.#network = options.network ?? false
    this.#readOnly = (options.readOnly ?? []).map((path) => resolve(path))
    this.#closed = (options.closed ?? []).map((path) => resolve(path))
    this.#env = [...(options.env ?? [])]
    this.#shell = options.shell ?? '/bin/sh'
  }

  async run(command: string, options: CommandOptions): Promise<CommandResult> {
    const commandId = randomUUID()
    const marks = { [RUN_VARIABLE]: options.mark, [COMMAND_VARIABLE]: commandId }
    const env = scrubbedEnvironment(process.env, this.#env, { ...options.env, ...marks })
    const { cwd, cwdDescriptor } = options
    const sandbox = await sandboxArguments({
      cwd,
      home: env['HOME'],
      path: env['PATH'] ?? '',
      network: this.#network,
      readOnly: this.#readOnly,
      writable: options.writable,
      closed: this.#closed,
    })
    const hold = holdArguments(this.#shell, command, cwdDescriptor !== undefined)
    const launch = {
      file: 'bwrap',
      args: [...sandbox, '--', this.#shell, ...hold],
      // The temporary folder of this process does not exist in the sandbox.
      env: { ...env, TMPDIR: '/tmp', ...options.env, ...marks },
      cwd,
      cwdDescriptor,
      commandId,
      leaderIsSandbox: true,
    }
    return await runHeld(launch, options)
  }

  async killMarked(mark: string): Promise<number> {
    return await killAll([markedProcesses(RUN_VARIABLE, mark)])
  }
}
