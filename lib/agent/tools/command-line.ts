/**
 * What tools run with `context.run()`: a shell's command line, or a program with arguments that no
 * shell reads.
 *
 * @module
 */
import { resolve } from 'node:path'
import { shellWord } from '../../internal/text.js'
import { checkOptions, checkString, type OptionKinds } from '../../internal/options.js'
import type { CommandOptions } from '../executor.js'
import type { ToolCommandOptions } from '../tool-command.js'

/** Linux takes no longer string as one argument of a program, here of the shell. */
const MAX_COMMAND_BYTES = 128 * 1024 - 1

const OPTIONS: OptionKinds<ToolCommandOptions> = {
  args: 'array', cwd: 'string', cwdDescriptor: 'number', env: 'object', timeoutMs: 'number',
  maxOutputBytes: 'number', mark: 'string', writable: 'array', isolated: 'object', signal: 'object',
  onStart: 'function',
}

/** Where a tool's command runs, and what stops it. */
export interface CommandPlace {
  /** The folder that its `cwd` is relative to. */
  readonly root: string
  readonly runId: string
  /** Of the call. */
  readonly signal: AbortSignal
  readonly onStart: (pgid: number) => Promise<void>
}

/**
 * Returns what an executor runs for the method of a tool's context that takes a command.
 *
 * @throws TypeError that names what is invalid, without its text, which may be a secret.
 */
export function toolCommand(
  method: string,
  command: string,
  options: ToolCommandOptions,
  { onStart, root, runId, signal: called }: CommandPlace,
): readonly [line: string, options: CommandOptions] {
  checkOptions(options, OPTIONS, method)
  checkEnvironment(options.env ?? {})
  const { args, cwd = root, onStart: alsoOnStart, signal: own, ...settings } = options
  const line = args === undefined ? command : programLine(command, args)
  return [line, {
    env: {},
    timeoutMs: 120_000,
    maxOutputBytes: 65_536,
    mark: runId,
    writable: [],
    ...settings,
    cwd: resolve(root, cwd),
    signal: own === undefined ? called : AbortSignal.any([called, own]),
    onStart: async (pgid) => {
      await onStart(pgid)
      await alsoOnStart?.(pgid)
    },
  }]
}

/**
 * The line on which a shell finds nothing to expand: in single quotes, everything but a single
 * quote stands for itself. `exec` lets the program take the place of the shell.
 */
function programLine(program: string, args: readonly string[]): string {
  checkWord('the program', program)
  if (program === '') throw new TypeError('the program must not be empty')
  // Some shells would take it for an option of `exec`.
  if (program.startsWith('-')) throw new TypeError('the program must not begin with -')
  for (const [i, arg] of args.entries()) checkWord(`args[${i}]`, arg)
  const line = `exec ${[program, ...args].map(shellWord).join(' ')}`
  const bytes = Buffer.byteLength(line)
  if (bytes <= MAX_COMMAND_BYTES) return line
  throw new TypeError(
    `the program and its args have ${bytes} bytes when quoted, of at most ${MAX_COMMAND_BYTES}: ` +
      'put long text in a file, and pass its path',
  )
}

function checkEnvironment(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      const rule = 'must be named with letters, digits and _, and not begin with a digit'
      throw new TypeError(`variables in env ${rule}`)
    }
    checkWord(`env.${name}`, value)
    if (Buffer.byteLength(value) + name.length + 1 <= MAX_COMMAND_BYTES) continue
    const most = `with its name, at most ${MAX_COMMAND_BYTES} bytes`
    throw new TypeError(`env.${name} must have, ${most}: put long text in a file`)
  }
}

function checkWord(what: string, value: string): void {
  checkString(what, value)
  if (value.includes('\0')) throw new TypeError(`${what} must not contain NUL`)
}
