import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { warn } from '../../internal/errors.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { CommandOptions, CommandResult, Executor } from '../executor.js'
import { isExhausted } from '../exhaustion.js'
import {
  COMMAND_VARIABLE, findProgram, redirectedEnvironment, RUN_VARIABLE, scrubbedEnvironment,
} from './environment.js'
import { holdArguments, notNow, runHeld } from './held-command.js'
import { PackageMounts } from './package-mounts.js'
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
 * process, mount, host name and IPC namespaces, no capabilities, no user namespaces of its own, no
 * network unless allowed.
 *
 * A command may write to its working directory, to `writable` folders of the call, and to private
 * folders that end with it: `/tmp`, `/var/tmp`, `/dev/shm` and an empty home folder. It may read
 * system folders (`/usr`, `/bin`, `/lib`, `/opt` and a choice of `/etc`), folders of `PATH`, known
 * tool chains and `readOnly`. Nothing else exists there: no keys, no other processes, no sockets
 * of other services but those in folders that it may read. With `network` it also reaches sockets
 * of this machine that have no file. `/proc` is read-only. Its background processes end with it,
 * and all of them end when this process dies.
 *
 * Run the service as an ordinary user. As root, what a fault of the kernel or of bubblewrap lets
 * out of a sandbox is root, and the first call in a process warns of that
 * (`RUNWRIGHT_SANDBOX_ROOT`).
 */
export function bubblewrapExecutor(options: BubblewrapOptions = {}): Executor {
  checkOptions(options, OPTIONS, 'bubblewrapExecutor()')
  warnRoot()
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
  const { exitCode, output } = await new BubblewrapExecutor(options).run('true', {
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

let warned = false

function warnRoot(): void {
  if (warned || process.geteuid?.() !== 0) return
  warned = true
  warn(
    'commands in bubblewrap sandboxes run as root, though without capabilities: ' +
      'run this service as an ordinary user',
    { code: 'RUNWRIGHT_SANDBOX_ROOT' },
  )
}

/**
 * Keeps commands from creating user namespaces. In one of its own, root could mount the control
 * groups of the machine writable, without any capability outside.
 */
const NO_USER_NAMESPACES = ['--unshare-user', '--disable-userns']
let noUserNamespaces: readonly string[] | undefined

/**
 * These arguments, if bubblewrap takes them: it does from version 0.8 on, but not where it has the
 * set-user-ID bit.
 */
async function userNamespaceArguments(): Promise<readonly string[]> {
  if (noUserNamespaces !== undefined) return noUserNamespaces
  try {
    const args = [...NO_USER_NAMESPACES, '--ro-bind', '/', '/', 'true']
    await promisify(execFile)(findProgram('bwrap'), args)
    noUserNamespaces = NO_USER_NAMESPACES
  } catch (error) {
    if (isExhausted(error)) throw notNow(error)
    // Not when it is not installed (yet): that has no exit code.
    if (typeof (error as { code: unknown }).code === 'number') noUserNamespaces = []
  }
  return noUserNamespaces ?? []
}

let descriptorsTaken: boolean | undefined

/** True if bubblewrap can mount by descriptor: since 0.10, and in patched older versions. */
async function takesDescriptors(): Promise<boolean> {
  if (descriptorsTaken !== undefined) return descriptorsTaken
  try {
    const { stdout } = await promisify(execFile)(findProgram('bwrap'), ['--help'])
    descriptorsTaken = stdout.includes('--ro-bind-fd')
  } catch (error) {
    if (isExhausted(error)) throw notNow(error)
  }
  return descriptorsTaken ?? false
}

/**
 * Variables with which the C library loads code. They are for commands; `bwrap` itself, outside of
 * the sandbox, would load libraries that a command has put into the workspace.
 */
const LOADER_VARIABLES = /^(LD_|GLIBC_TUNABLES$|GCONV_PATH$|LOCPATH$)/

/** See {@link bubblewrapExecutor}. */
export class BubblewrapExecutor implements Executor {
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
    const { cwd, cwdDescriptor, isolated } = options
    const env = redirectedEnvironment(
      scrubbedEnvironment(process.env, this.#env, { ...options.env, ...marks }),
      isolated,
    )
    const takesFolder = cwdDescriptor !== undefined
    using packages =
      isolated !== undefined && (await takesDescriptors())
        ? new PackageMounts(takesFolder ? 5 : 4)
        : null
    const sandbox = await sandboxArguments({
      cwd,
      home: env['HOME'],
      path: env['PATH'] ?? '',
      network: this.#network,
      readOnly: this.#readOnly,
      writable: options.writable,
      closed: this.#closed,
      isolated,
      packages,
    }).catch((error: unknown) => {
      throw isExhausted(error) ? notNow(error) : error
    })
    // The temporary folder of this process does not exist in the sandbox.
    const all = Object.entries({ ...env, TMPDIR: '/tmp', ...options.env, ...marks })
    const isLoaders = ([name]: readonly [string, string]): boolean => LOADER_VARIABLES.test(name)
    const inner = all.filter(isLoaders).flatMap((entry) => ['--setenv', ...entry])
    const hold = holdArguments(this.#shell, command, takesFolder)
    const launch = {
      file: 'bwrap',
      args: [...(await userNamespaceArguments()), ...inner, ...sandbox, '--', this.#shell, ...hold],
      env: Object.fromEntries(all.filter((entry) => !isLoaders(entry))),
      cwd,
      cwdDescriptor,
      packages,
      commandId,
      leaderIsSandbox: true,
    }
    return await runHeld(launch, options)
  }

  mountsFolders(): Promise<boolean> {
    return Promise.resolve(true)
  }

  async killMarked(mark: string): Promise<number> {
    return await killAll([markedProcesses(RUN_VARIABLE, mark)])
  }
}
