import { lowerBound } from '../internal/queues.js'
import type { Patch } from './operators/patch.js'
import type { SourceFile } from './source.js'
import type { Token } from './token.js'
import { tokenizeJavaScript } from './tokenize-javascript.js'
import { tokenizePython } from './tokenize-python.js'

/** Tokens that are counted, which is enough to know the habits of a project. */
const MAX_TOKENS = 80_000
/** Longer changes are not compared: in tokens, and in characters. */
const MAX_CHANGED = 60
const MAX_LENGTH = 240
/** Tokens before and behind a change by which it is judged. */
const BEFORE = 4
const AFTER = 2
/** How much the shorter context counts beside the longer one, in occurrences. */
const BACK_OFF = 2
/** Numbers of words are below it, so that three of them are one exact number. */
const MAX_WORDS = 100_000
/** The number of what does not occur. */
const UNKNOWN = MAX_WORDS - 1
/** How much of a difference counts: the rest is for what cannot be compared. */
const MOST = 4
/** Tokens of which half is known of the habits of a project that there is to know. */
const HALF_KNOWN = 600

/** Which tokens follow which, in one way of looking at them. */
class Counts {
  readonly #words = new Map<string, number>()
  readonly #counts = new Map<number, number>()
  #total = 0

  /** Gives numbers to words. */
  learn(words: readonly string[]): readonly number[] {
    for (const word of words) {
      if (!this.#words.has(word)) this.#words.set(word, Math.min(this.#words.size + 1, UNKNOWN))
    }
    return this.numbers(words)
  }

  numbers(words: readonly string[]): readonly number[] {
    return words.map((word) => this.#words.get(word) ?? UNKNOWN)
  }

  /** Adds sequences, or takes them away again. */
  add(words: readonly number[], from: number, to: number, sign: 1 | -1): void {
    for (let at = from; at < to; at++) {
      const [a, b, c] = [words[at - 2] ?? 0, words[at - 1] ?? 0, words[at] ?? 0]
      for (const key of [c, pair(b, c), triple(a, b, c)]) {
        this.#counts.set(key, (this.#counts.get(key) ?? 0) + sign)
      }
      this.#total += sign
    }
  }

  /** The mean logarithm of the likelihood of each token from `from` on. */
  mean(words: readonly number[], from: number, to: number): number {
    let sum = 0
    for (let at = from; at < to; at++) {
      const [a, b, c] = [words[at - 2] ?? 0, words[at - 1] ?? 0, words[at] ?? 0]
      const alone = (this.#of(c) + 0.5) / (this.#total + 0.5 * this.#words.size + 1)
      const after = (this.#of(pair(b, c)) + BACK_OFF * alone) / (this.#of(b) + BACK_OFF)
      const whole = this.#of(triple(a, b, c))
      const both = (whole + BACK_OFF * after) / (this.#of(pair(a, b)) + BACK_OFF)
      sum += Math.log(both)
    }
    return sum / Math.max(1, to - from)
  }

  #of(key: number): number {
    return Math.max(0, this.#counts.get(key) ?? 0)
  }
}

const pair = (a: number, b: number): number => (a + 1) * MAX_WORDS + b
const triple = (a: number, b: number, c: number): number =>
  ((a + 1) * MAX_WORDS + b + 1) * MAX_WORDS + c

/**
 * How usual sequences of tokens are in a project: wrong code is less so than its repair (A. Hindle
 * et al.: "On the Naturalness of Software", 2012; B. Ray et al.: "On the Naturalness of Buggy
 * Code", 2016).
 */
export class Naturalness {
  /** By the tokens themselves, and by their kinds. */
  readonly #views = [textOf, kindOf].map((wordOf) => ({
    wordOf, counts: new Counts(), numbers: new Map<SourceFile, readonly number[]>(),
  }))

  readonly #size: number

  constructor(files: readonly SourceFile[]) {
    const size = files.reduce((sum, { tokens }) => sum + tokens.length, 0)
    this.#size = Math.min(size, MAX_TOKENS)
    for (const { wordOf, counts, numbers } of this.#views) {
      let left = MAX_TOKENS
      for (const file of files) {
        if (left <= 0) break
        const words = counts.learn(file.tokens.map(wordOf))
        numbers.set(file, words)
        counts.add(words, 0, Math.min(words.length, left), 1)
        left -= words.length
      }
    }
  }

  /** How much more usual a file is with a change, as a factor around 1. */
  factor(file: SourceFile, { start, end, text }: Pick<Patch, 'start' | 'end' | 'text'>): number {
    const { tokens, language } = file
    if (text.length > MAX_LENGTH) return 1
    const first = firstAfter(tokens, start)
    let last = first
    while (last < tokens.length && tokens[last]!.start < end) last += 1
    const [from, to] = last === first
      ? [start, end]
      : [Math.min(start, tokens[first]!.start), Math.max(end, tokens[last - 1]!.end)]
    const whole = file.text.slice(from, start) + text + file.text.slice(end, to)
    const changed = language === 'python' ? tokenizePython(whole) : tokenizeJavaScript(whole)
    if (changed.length > MAX_CHANGED || last - first > MAX_CHANGED) return 1
    const head = Math.min(first, BEFORE)
    let sum = 0
    for (const { wordOf, counts, numbers } of this.#views) {
      const words = numbers.get(file)
      if (words === undefined) return 1
      const before = words.slice(first - head, last + AFTER)
      const after = [
        ...before.slice(0, head), ...counts.numbers(changed.map(wordOf)),
        ...words.slice(last, last + AFTER),
      ]
      // What is there is no sign that it is right.
      counts.add(before, head, before.length, -1)
      sum += counts.mean(after, head, after.length) - counts.mean(before, head, before.length)
      counts.add(before, head, before.length, 1)
    }
    const trust = this.#size / (this.#size + HALF_KNOWN) / 2
    return Math.exp(trust * Math.max(-MOST, Math.min(MOST, sum)))
  }
}

const textOf = ({ text }: Token): string => text

/** A word for all names, and for all values that are not short. */
function kindOf({ kind, text }: Token): string {
  if (kind === 'keyword' || kind === 'punctuator') return text
  return kind === 'number' && text.length < 2 ? text : kind
}

/** The first token that ends after an offset. */
function firstAfter(tokens: readonly Token[], start: number): number {
  return lowerBound(tokens.length, (at) => tokens[at]!.end <= start)
}
