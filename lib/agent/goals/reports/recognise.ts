import type { ShellCommand, ShellWord } from '../shell-commands.js'

/** Programs that run the command after them, beside variables and options. */
const BEFORE = new Set(
  'npx bunx pnpx yarn pnpm exec time env cross-env dotenv c8 nyc node'.split(' '),
)

/** Variables, options, and the signs of a makefile. */
const NO_PROGRAM = /^\w+=|^-[\w-]+(?:=|$)|^[@-]+$/

/** Whether the program that a command starts, by its name and arguments, is the wanted one. */
type ProgramTest = (name: string, args: readonly string[]) => boolean

/** Recognises a command that starts such a program, by name or path, maybe behind a wrapper. */
export function program(isWanted: ProgramTest): (command: ShellCommand) => ShellWord | undefined {
  return ({ words, runs }) => {
    if (!runs) return undefined
    for (const [i, word] of words.entries()) {
      // A makefile silences a command so: `@mocha`.
      const text = i === 0 ? word.text.replace(/^[@-]+(?!$)/, '') : word.text
      const args = words.slice(i + 1, i + 3).map((next) => next.text)
      if (isWanted(nameOf(text), args)) return words[0]
      const isBefore = NO_PROGRAM.test(word.text) || NO_PROGRAM.test(text)
      if (!isBefore && !BEFORE.has(nameOf(text))) return undefined
    }
    return undefined
  }
}

/** The last part of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** True when a text sets a variable without keeping its value, as `A="$A b"` would. */
export function replaces(text: string, variable: RegExp): boolean {
  return text.split(/\s+/).some((part) => variable.test(part.slice(part.lastIndexOf('$') + 1)))
}

/** True when a text starts Python with an option that has one of these letters, such as `-Im`. */
export function hasPythonOption(text: string, letters: RegExp): boolean {
  const parts = text.split(/\s+/)
  return parts.some((part, i) => {
    const options = /^-[a-zA-Z]*/.exec(parts[i + 1] ?? '')?.[0] ?? ''
    return part.includes('python') && letters.test(options)
  })
}
