/**
 * Questions on a terminal, one after the other.
 *
 * @module
 */
import { createInterface, type Interface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { harmless, render, type Part } from './print.js'

/** Lines that are typed ahead, at most. */
const MOST_LINES = 100

/** What a dialogue is held with. */
export interface DialogueOptions {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  readonly colour: boolean
  /** Called on Ctrl-C, which is no signal meanwhile. */
  readonly onInterrupt: () => void
  /** Ends the dialogue as the end of the input does. */
  readonly signal: AbortSignal
}

export class Dialogue {
  readonly #options: DialogueOptions
  readonly #reader: Interface
  readonly #lines: string[] = []
  #take: ((line: string | null) => void) | null = null
  #isFirst = true
  #isOver = false
  readonly #close = (): void => this.close()

  constructor(options: DialogueOptions) {
    this.#options = options
    const { input, output, signal, onInterrupt } = options
    this.#reader = createInterface({ input, output, terminal: true, historySize: 0 })
      .on('line', (line) => this.#typed(line))
      .on('SIGINT', onInterrupt)
      .on('close', () => this.#ended())
    signal.addEventListener('abort', this.#close)
    if (signal.aborted) this.close()
  }

  /** Prints a line that is not cut: who decides must see all of it. */
  async say(...parts: Part[]): Promise<void> {
    const { output, colour } = this.#options
    await writeAll(output, `${render(parts, colour, null)}\n`)
  }

  /**
   * Resolves to what was typed, without blanks around it; to null at the end of the input. What was
   * typed before the first question answers nothing: nobody had seen what it is about.
   */
  async ask(question: string): Promise<string | null> {
    if (this.#isFirst) {
      // In a turn of the event loop, whatever waits in the terminal arrives.
      await setImmediate()
      await setImmediate()
      this.#lines.length = 0
      this.#isFirst = false
    }
    if (this.#isOver) return null
    this.#reader.setPrompt(harmless(question))
    this.#reader.prompt()
    const line = this.#lines.shift() ?? (await this.#nextLine())
    return line?.trim() ?? null
  }

  close(): void {
    this.#options.signal.removeEventListener('abort', this.#close)
    this.#reader.close()
  }

  #nextLine(): Promise<string | null> {
    return new Promise((resolve) => (this.#take = resolve))
  }

  #typed(line: string): void {
    const take = this.#take
    this.#take = null
    if (take !== null) take(line)
    else if (this.#lines.length < MOST_LINES) this.#lines.push(line)
  }

  #ended(): void {
    this.#isOver = true
    this.#take?.(null)
    this.#take = null
  }
}

/** Resolves when it is written, or when it never will be. */
export function writeAll(stream: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve) => stream.write(text, () => resolve()))
}
