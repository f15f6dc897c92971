/**
 * The commands in the text of a shell script, makefile recipe or npm script, as far as they can be
 * told without running it. One pass over the text; what is in quotes is read once more, since it
 * may be commands for another shell (`bash -c "cd a && npm test"`).
 *
 * @module
 */

/** A word without its quotes. */
export interface ShellWord {
  readonly text: string
  /** Offset in the text. */
  readonly at: number
}

/** A simple command: a program and its arguments, up to `;`, `&`, `|` or the end of the line. */
export interface ShellCommand {
  readonly words: readonly ShellWord[]
  /** False for the beginning of a quoted text that may as well be an ordinary argument. */
  readonly runs: boolean
}

/** Quotes in quotes are of the other kind, so that deeper ones cannot be. */
const MAX_DEPTH = 2

/** All commands, in the order in which they begin. */
export function shellCommands(text: string): readonly ShellCommand[] {
  const reader = new CommandReader([], 0)
  reader.read(text, 0, true)
  return reader.commands.filter(({ words }) => words.length > 0)
}

/** Characters of a word without a meaning of their own; `#` has one only before it. */
const PLAIN = /[^\s;&|()"'\\`]+/y

interface Draft {
  readonly words: ShellWord[]
  readonly runs: boolean
}
type OpenWord = { text: string; readonly at: number } | null

class CommandReader {
  readonly commands: Draft[]
  readonly #depth: number
  #command: Draft | null = null
  #word: OpenWord = null
  /** Commands that go on after a closing parenthesis, as after `$(…)`. */
  #outer: { readonly command: Draft | null; readonly word: OpenWord }[] = []

  constructor(commands: Draft[], depth: number) {
    this.commands = commands
    this.#depth = depth
  }

  /** Reads a text that begins at `base`; `runs` says whether it begins with a command. */
  read(text: string, base: number, runs: boolean): void {
    this.#command = this.#begin(runs)
    /** Ends of lines in which such a quote is not closed. */
    const open = { '"': -1, "'": -1 }
    for (let i = 0; i < text.length; i++) {
      const char = text[i]!
      if (char === '\n') {
        this.#endCommand()
        this.#outer = []
      } else if (char === ';' || char === '&' || char === '|') this.#endCommand()
      else if (char === '(') {
        this.#outer.push({ command: this.#command, word: this.#word })
        this.#word = null
        this.#command = null
      } else if (char === ')') {
        this.#endCommand()
        const outer = this.#outer.pop()
        if (outer !== undefined) ({ command: this.#command, word: this.#word } = outer)
      } else if (char === '"' || char === "'") {
        const end = i < open[char] ? -1 : closing(text, i)
        if (end === -1) open[char] = Math.max(open[char], lineEnd(text, i))
        else {
          this.#quoted(text.slice(i + 1, end), base + i + 1)
          i = end
        }
      } else if (char === '#' && this.#word === null) i = lineEnd(text, i) - 1
      else if (char === '\\' && i + 1 < text.length) {
        i += 1
        if (text[i] === '\n') this.#endWord()
        else this.#add(text.charAt(i), base + i - 1)
      } else {
        PLAIN.lastIndex = i
        const plain = PLAIN.exec(text)?.[0]
        if (plain === undefined) this.#endWord()
        else {
          this.#add(plain, base + i)
          i += plain.length - 1
        }
      }
    }
    this.#endCommand()
  }

  #begin(runs: boolean): Draft {
    const command = { words: [], runs }
    this.commands.push(command)
    return command
  }

  #add(text: string, at: number): void {
    this.#command ??= this.#begin(true)
    this.#word ??= { text: '', at }
    this.#word.text += text
  }

  #quoted(text: string, at: number): void {
    const before = this.#word === null ? this.#command?.words.at(-1)?.text : undefined
    const isScript = before !== undefined && /^-\w*c$/.test(before)
    this.#add(text, at)
    if (this.#depth === MAX_DEPTH || !(isScript || /[\s;&|(]/.test(text))) return
    new CommandReader(this.commands, this.#depth + 1).read(text, at, isScript)
  }

  #endWord(): void {
    if (this.#word !== null) this.#command?.words.push(this.#word)
    this.#word = null
  }

  #endCommand(): void {
    this.#endWord()
    this.#command = null
  }
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end === -1 ? text.length : end
}

/** Offset of the quote that closes the one at `at` in the same line; -1 for none. */
function closing(text: string, at: number): number {
  for (let i = at + 1; i < text.length && text[i] !== '\n'; i++) {
    if (text[i] === text[at]) return i
    if (text[i] === '\\' && text[at] === '"') i += 1
  }
  return -1
}
