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
import { Dialogue, writeAll } from './dialogue.js'
import { render, type Part } from './print.js'

/** Columns of a terminal that does not say how many it has. */
const COLUMNS = 80

/** Are colours wanted on this stream? As Node has it, FORCE_COLOR comes before NO_COLOR. */
export function wantsColour(isTty: boolean, env: NodeJS.ProcessEnv): boolean {
  const force = env['FORCE_COLOR']
  if (force !== undefined) return force !== '0' && force !== 'false'
  return isTty && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
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
    const talking = this.#converse(talk)
    this.#dialogue = talking.then(ignore, ignore).then(() => void (this.#dialogue = null))
    return await talking
  }

  async #converse<T>(talk: (dialogue: Dialogue) => Promise<T>): Promise<T> {
    const dialogue = new Dialogue({
      input: process.stdin,
      output: this.#talk,
      colour: this.#talkColour,
      onInterrupt: () => this.#onInterrupt(),
      signal: this.#stopAsking.signal,
    })
    try {
      return await talk(dialogue)
    } finally {
      dialogue.close()
    }
  }

  /** Ends an open question, and all that follow, as if there was no more input. */
  stopAsking(): void {
    this.#stopAsking.abort()
  }

  get isStopped(): boolean {
    return this.#stopAsking.signal.aborted
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

function ignore(): void {}
