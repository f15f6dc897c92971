/**
 * The terminal of a run: lines, a progress line below them, and questions.
 *
 * 1. Every text passes `harmless()`; styles are added around it, and only where colours are wanted.
 * 2. Whoever prints waits until it is written, so that nothing piles up behind a slow reader.
 * 3. While a question is open, lines wait for its answer.
 * 4. A reader that goes away ends the output quietly, and is reported once.
 *
 * @module
 */
import { createInterface } from 'node:readline'
import { styleText } from 'node:util'
import { cut, harmless } from './print.js'

/** What Node calls a style: `red`, `dim`, … */
export type Style = Parameters<typeof styleText>[0]

/** A text, with or without a style. */
export type Part = string | readonly [style: Style, text: string]

/** Columns of a terminal that does not say how many it has. */
const COLUMNS = 80

/** Are colours wanted on this stream? As Node has it, FORCE_COLOR comes before NO_COLOR. */
export function wantsColour(isTty: boolean, env: NodeJS.ProcessEnv): boolean {
  const force = env['FORCE_COLOR']
  if (force !== undefined) return force !== '0' && force !== 'false'
  return isTty && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
}

/** The text of a line, styled, and cut to so many columns; null cuts nothing. */
export function render(parts: readonly Part[], colour: boolean, columns: number | null): string {
  const styles = parts.map((part) => (typeof part === 'string' ? null : part[0]))
  let texts = parts.map((part) => harmless(typeof part === 'string' ? part : part[1]))
  if (columns !== null) {
    let left = cut(texts.join(''), columns)
    texts = texts.map((text, index) => {
      const isLast = index === texts.length - 1
      const taken = isLast ? left : left.slice(0, text.length)
      left = left.slice(taken.length)
      return taken
    })
  }
  return texts.map((text, index) => styled(styles[index] ?? null, text, colour)).join('')
}

function styled(style: Style | null, text: string, colour: boolean): string {
  if (!colour || style === null || text === '') return text
  return styleText(style, text, { validateStream: false })
}

/** What a question is asked with. */
export interface Dialogue {
  /** Prints a line that is not cut: who decides must see all of it. */
  say(...parts: Part[]): Promise<void>
  /** Resolves to what was typed, without blanks around it; to null at the end of the input. */
  ask(question: string): Promise<string | null>
}

export class Terminal {
  /** Can questions be asked? */
  readonly canAsk: boolean
  readonly #out: NodeJS.WriteStream
  readonly #talk: NodeJS.WriteStream
  readonly #isTty: boolean
  readonly #colour: boolean
  readonly #talkColour: boolean
  #progress: readonly Part[] = []
  #isDrawn = false
  #dialogue: Promise<unknown> | null = null
  readonly #stopAsking = new AbortController()
  #onInterrupt: () => void = () => undefined

  /** @param json - standard output is for a program: questions go to standard error */
  constructor(json: boolean, { stdin, stdout, stderr, env }: NodeJS.Process = process) {
    const isTty = stdout.isTTY === true && !json
    this.#out = stdout
    this.#talk = isTty ? stdout : stderr
    this.#isTty = isTty && env['TERM'] !== 'dumb'
    this.#colour = wantsColour(isTty, env)
    this.#talkColour = wantsColour(this.#talk.isTTY === true, env)
    this.canAsk = stdin.isTTY === true && this.#talk.isTTY === true
  }

  /** Calls back on Ctrl-C at a question, where it is no signal, and when the reader goes away. */
  watch(onInterrupt: () => void, onClosed: () => void): void {
    this.#onInterrupt = onInterrupt
    this.#out.once('error', onClosed)
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
    if (this.#isTty) this.#out.on('resize', () => this.#redraw('\r\x1b[J'))
  }

  /** Prints a line; on a terminal it is cut to its columns unless it is `whole`. */
  async line(parts: readonly Part[], whole = false): Promise<void> {
    await this.#dialogue
    const columns = this.#isTty && !whole ? this.#columns() : null
    await this.write(`${render(parts, this.#colour, columns)}\n`)
  }

  /** Prints text as it is, above the progress line. */
  async write(text: string): Promise<void> {
    const erase = this.#isDrawn ? '\r\x1b[K' : ''
    this.#isDrawn = false
    await writeAll(this.#out, `${erase}${text}`)
    this.#redraw('')
  }

  /** Replaces the progress line; nothing removes it. */
  progress(...parts: Part[]): void {
    this.#progress = parts
    this.#redraw('\r\x1b[K')
  }

  /** Lets `talk` ask, after those that ask now. Lines of others wait until it is over. */
  async converse<T>(talk: (dialogue: Dialogue) => Promise<T>): Promise<T> {
    while (this.#dialogue !== null) await this.#dialogue
    if (this.#isDrawn) this.#redraw('\r\x1b[K', [])
    const talking = talk({
      say: (...parts) => writeAll(this.#talk, `${render(parts, this.#talkColour, null)}\n`),
      ask: (question) => this.#ask(question),
    })
    const over = talking.then(ignore, ignore).then(() => void (this.#dialogue = null))
    this.#dialogue = over
    return await talking
  }

  /** Ends an open question, and all that follow, as if there was no more input. */
  stopAsking(): void {
    this.#stopAsking.abort()
  }

  get isStopped(): boolean {
    return this.#stopAsking.signal.aborted
  }

  #ask(question: string): Promise<string | null> {
    const { signal } = this.#stopAsking
    if (signal.aborted) return Promise.resolve(null)
    const reader = createInterface({
      input: process.stdin,
      output: this.#talk,
      terminal: true,
      historySize: 0,
    })
    return new Promise((resolve) => {
      const end = (answer: string | null): void => {
        resolve(answer)
        signal.removeEventListener('abort', stop)
        reader.close()
      }
      const stop = (): void => end(null)
      signal.addEventListener('abort', stop)
      reader.on('SIGINT', () => this.#onInterrupt())
      reader.on('close', stop)
      reader.question(question, (answer) => end(answer.trim()))
    })
  }

  #redraw(erase: string, progress = this.#dialogue === null ? this.#progress : []): void {
    if (!this.#isTty || this.#out.destroyed) return
    this.#isDrawn = progress.length > 0
    this.#out.write(`${erase}${render(progress, this.#colour, this.#columns() - 1)}`)
  }

  #columns(): number {
    return Math.max(this.#out.columns || COLUMNS, 10)
  }
}

/** Resolves when it is written, or when it never will be. */
function writeAll(stream: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve) => stream.write(text, () => resolve()))
}

function ignore(): void {}
