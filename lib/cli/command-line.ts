/**
 * The command line: what each command takes, how that is read, and its help. Help and reading come
 * from one table, so that neither can name an option that the other does not know.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import { nearestName } from '../internal/text.js'

/** What a process ends with. */
export const EXIT = { achieved: 0, failed: 1, usage: 2, gate: 3, aborted: 130 } as const

/** Ends the command: its message is shown in one line, without a stack. */
export class CommandError extends Error {
  override name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** What was typed cannot be meant. */
export class UsageError extends CommandError {
  override name = 'UsageError'

  constructor(message: string) {
    super(message, EXIT.usage)
  }
}

/** One option of a command. */
export interface OptionSpec {
  /** Stands for the value in the help; absent for a switch. */
  readonly value?: string
  /** Lines of the help. */
  readonly about: readonly string[]
  /** Given several times, all of its values count. */
  readonly many?: true
  /** The value is one of these words, and may be left out: then it is the first. */
  readonly words?: readonly string[]
}

export interface CommandSpec {
  /** What is typed before the options: `runwright run <goal>`. */
  readonly usage: string
  readonly about: string
  readonly options: Readonly<Record<string, OptionSpec>>
  /** What the help says after the options. */
  readonly more: string
}

/** What was typed, by the names of a table. */
export class Arguments {
  /** What is no option, in order. */
  readonly words: readonly string[]
  readonly #values: ReadonlyMap<string, readonly string[]>

  constructor(words: readonly string[], values: ReadonlyMap<string, readonly string[]>) {
    this.words = words
    this.#values = values
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  /** Every value, in order. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? []
  }

  /** The last value, as later options replace earlier ones. */
  get(name: string): string | undefined {
    return this.all(name).at(-1)
  }

  /** @throws {@link UsageError} for anything but a whole number. */
  number(name: string): number | undefined {
    const text = this.get(name)
    if (text === undefined) return undefined
    if (/^\d{1,9}$/.test(text)) return Number(text)
    throw new UsageError(`--${name} must be a whole number, got ${JSON.stringify(text)}`)
  }
}

/** @throws {@link UsageError} that names what cannot be meant, and what may be. */
export function readArguments(args: readonly string[], { options }: CommandSpec): Arguments {
  const known = { ...options, help: { about: [] } } as CommandSpec['options']
  const { tokens } = parseArgs({
    args: args.flatMap((arg, index) => impliedWord(arg, args[index + 1], known)),
    options: Object.fromEntries(
      Object.entries(known).map(([name, { value, many = false }]) => {
        const type = value === undefined ? ('boolean' as const) : ('string' as const)
        return [name, { type, multiple: many, ...(name === 'help' && { short: 'h' }) }]
      }),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const words: string[] = []
  const values = new Map<string, string[]>()
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const value = checkedValue(token, known)
    values.set(token.name, [...(values.get(token.name) ?? []), value])
  }
  return new Arguments(words, values)
}

/** An option whose value may be left out gets the first of its words. */
function impliedWord(
  arg: string,
  next: string | undefined,
  known: CommandSpec['options'],
): readonly string[] {
  const words = arg.startsWith('--') ? known[arg.slice(2)]?.words : undefined
  return words === undefined || words.includes(next ?? '') ? [arg] : [`${arg}=${words[0]}`]
}

interface OptionToken {
  readonly name: string
  readonly rawName: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

function checkedValue(
  { name, rawName, value, inlineValue }: OptionToken,
  known: CommandSpec['options'],
): string {
  const spec = Object.hasOwn(known, name) ? known[name] : undefined
  if (spec === undefined) {
    const meant = nearestName(name, Object.keys(known))
    const hint = meant === undefined ? 'see --help' : `did you mean --${meant}?`
    throw new UsageError(`unknown option ${rawName}; ${hint}`)
  }
  if (spec.value === undefined) {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`)
    return ''
  }
  // Somebody who forgets a value goes on with the next option.
  const isForgotten = value === undefined || (inlineValue === false && /^-./.test(value))
  if (isForgotten || value === '') {
    throw new UsageError(`${rawName} needs a value: ${rawName} ${spec.value}`)
  }
  if (spec.words !== undefined && !spec.words.includes(value)) {
    throw new UsageError(`${rawName} must be one of ${spec.words.join(', ')}, got ${value}`)
  }
  return value
}

/** Columns of the names of options in a help. */
const NAMES = 28

export function helpOf({ usage, about, options, more }: CommandSpec): string {
  const lines = Object.entries(options).flatMap(([name, { value, about: [first, ...rest] }]) => {
    const shown = `  --${name}${value === undefined ? '' : ` ${value}`}`
    const gap = ' '.repeat(NAMES)
    return [`${shown.padEnd(NAMES)}${first}`, ...rest.map((line) => `${gap}${line}`)]
  })
  return `${about}\n\nUsage: ${usage}\n\n${lines.join('\n')}\n\n${more.trim()}\n`
}
