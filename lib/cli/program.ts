/**
 * The program `runwright`: over server and agent, and imported by neither.
 *
 * @module
 */
import { describeError } from '../internal/errors.js'
import { VERSION } from '../internal/version.js'
import { nearestName } from '../internal/text.js'
import {
  CommandError,
  EXIT,
  helpOf,
  readArguments,
  UsageError,
  type Arguments,
  type CommandSpec,
} from './command-line.js'
import { printError } from './print.js'
import { run, RUN } from './run.js'
import { serve, SERVE } from './serve.js'

interface Command {
  readonly spec: CommandSpec
  /** Resolves to the exit code; to nothing while the process goes on. */
  readonly start: (args: Arguments) => Promise<number | void>
}

const COMMANDS: Readonly<Record<string, Command>> = {
  serve: { spec: SERVE, start: serve },
  run: { spec: RUN, start: run },
}

async function main(words: readonly string[]): Promise<number | void> {
  if (process.platform === 'win32') {
    printError('runs need Linux or macOS; on Windows use it in WSL: https://aka.ms/wsl')
    return EXIT.failed
  }
  const [first = 'serve', ...others] = words
  if (first === '--version' || first === '-v') return print(`${VERSION}\n`)
  if (first === 'help') return print(helpOf(commandOf(others[0] ?? 'serve').spec))
  const isOption = first.startsWith('-')
  const command = commandOf(isOption ? 'serve' : first)
  const args = readArguments(isOption ? words : others, command.spec)
  if (args.has('help')) return print(helpOf(command.spec))
  return await command.start(args)
}

/** @throws {@link UsageError} for a word that names no command. */
function commandOf(word: string): Command {
  const command = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined
  if (command !== undefined) return command
  const meant = nearestName(word, Object.keys(COMMANDS))
  const hint = meant === undefined ? `for a goal: runwright run ${word}` : `did you mean ${meant}?`
  throw new UsageError(`unknown command ${word}; ${hint}`)
}

function print(text: string): number {
  process.stdout.on('error', () => undefined)
  process.stdout.write(text)
  return EXIT.achieved
}

try {
  const code = await main(process.argv.slice(2))
  if (code !== undefined) process.exitCode = code
} catch (error) {
  printError(describeError(error))
  process.exitCode = error instanceof CommandError ? error.exitCode : EXIT.failed
}
