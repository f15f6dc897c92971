import { shellWord } from '../internal/text.js'

/** A word of a command: what the program receives, and how the shell wrote it. */
export interface ShellWord {
  readonly text: string
  /** Quoted anew; a pattern of file names stays one. */
  readonly raw: string
}

/** Quotes a word for the shell if necessary. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : shellWord(word)
}

/**
 * Splits a line into simple commands that are joined by `&&`; null when the shell would do
 * more than that with it: other operators, variables, substitutions. `*` and `?` outside quotes
 * remain patterns of file names.
 */
export function shellCommands(line: string): ShellWord[][] | null {
  const commands: ShellWord[][] = [[]]
  let text: string | null = null
  let raw = ''
  const end = (): void => {
    if (text !== null) commands.at(-1)!.push({ text, raw })
    text = null
    raw = ''
  }
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!
    if (char === "'" || char === '"') {
      const close = line.indexOf(char, at + 1)
      if (close < 0) return null
      const inner = line.slice(at + 1, close)
      const body = char === '"' ? withoutEscapes(inner) : inner
      if (body === null) return null
      text = (text ?? '') + body
      raw += body === '' ? "''" : quote(body)
      at = close
    } else if (char === ' ' || char === '\t') end()
    else if (line.startsWith('&&', at)) {
      end()
      if (commands.at(-1)!.length === 0) return null
      commands.push([])
      at++
    } else if (/[|&;<>()$`\\[\]{}~\n#!]/.test(char)) return null
    else {
      text = (text ?? '') + char
      raw += /[\w@%+=:,./*?-]/.test(char) ? char : quote(char)
    }
  }
  end()
  return commands.at(-1)!.length === 0 ? null : commands
}

/** The text of a double-quoted string without escapes; null when it has any. */
function withoutEscapes(inner: string): string | null {
  return /[$`\\]/.test(inner) ? null : inner
}
