/**
 * Finding lines in a text. A regular expression from a model may backtrack forever, and nothing on
 * its own thread can stop it, so it runs on a worker, which can be terminated.
 *
 * @module
 */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { TextFinder } from './text-finder.js'

/** Characters of a line that are shown. */
const MAX_LINE = 300
/** Milliseconds that a regular expression may take for all files of a search together. */
const REGEX_BUDGET_MS = 2_000

export interface LineMatch {
  /** Counted from 1. */
  readonly line: number
  /** The line, or the part of it around the match. */
  readonly text: string
}

/** The matches in one text; after a `problem` the matcher cannot be used again. */
export interface LineMatches {
  readonly matches: readonly LineMatch[]
  readonly problem?: string
}

/** Finds lines in texts. */
export interface LineMatcher {
  match(text: string, limit: number): Promise<LineMatches>
}

/** Finds lines that contain a text. */
export function literalMatcher(pattern: string, caseSensitive: boolean): LineMatcher {
  const fold = (text: string): string => (caseSensitive ? text : text.toLowerCase())
  const wanted = new TextFinder(fold(pattern))
  return {
    async match(text, limit) {
      const matches: LineMatch[] = []
      // Most files contain no match at all, which the whole text shows at once.
      if (wanted.indexIn(fold(text)) === -1) return { matches }
      const lines = text.split('\n')
      for (let i = 0; i < lines.length && matches.length < limit; i++) {
        const line = lines[i]?.replace(/\r$/, '') ?? ''
        const at = wanted.indexIn(fold(line))
        if (at !== -1) matches.push({ line: i + 1, text: excerpt(line, at) })
      }
      return { matches }
    },
  }
}

/**
 * Plain JavaScript, because a worker has no TypeScript loader. It answers each text with the
 * indices and columns of the matching lines, or with what is wrong with the pattern.
 */
const WORKER = `
const { parentPort, workerData: { source, flags } } = require('node:worker_threads')
let regex, problem
try { regex = new RegExp(source, flags) } catch (error) { problem = error.message }
parentPort.on('message', ({ text, limit }) => {
  if (regex === undefined) return parentPort.postMessage({ problem })
  const matches = []
  const lines = text.split('\\n')
  for (let i = 0; i < lines.length && matches.length < limit; i++) {
    const line = lines[i].endsWith('\\r') ? lines[i].slice(0, -1) : lines[i]
    const at = line.search(regex)
    if (at !== -1) matches.push([i, at])
  }
  parentPort.postMessage({ matches })
})`

/**
 * Finds lines that match a regular expression, within two seconds for all texts together. The
 * caller disposes of it.
 */
export function regexMatcher(
  pattern: string,
  caseSensitive: boolean,
): LineMatcher & AsyncDisposable {
  return new RegexMatcher(pattern, caseSensitive)
}

class RegexMatcher implements LineMatcher, AsyncDisposable {
  readonly #worker: Worker
  /** The time in which the thread starts does not count as the pattern's. */
  readonly #ready: Promise<unknown>
  #budgetMs = REGEX_BUDGET_MS

  constructor(pattern: string, caseSensitive: boolean) {
    // Models use this flag of other dialects, which JavaScript does not know.
    const folded = pattern.startsWith('(?i)')
    const source = folded ? pattern.slice(4) : pattern
    const unicode = /\\[pP]\{|\\u\{/.test(source) ? 'u' : ''
    const flags = `${caseSensitive && !folded ? '' : 'i'}${unicode}`
    const threads = process.getBuiltinModule('node:worker_threads')
    this.#worker = new threads.Worker(WORKER, {
      eval: true,
      workerData: { source, flags },
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    })
    this.#ready = once(this.#worker, 'online').catch(() => undefined)
    // An error (out of memory) is followed by the exit that `match` waits for.
    this.#worker.on('error', () => undefined)
  }

  async match(text: string, limit: number): Promise<LineMatches> {
    await this.#ready
    const started = performance.now()
    const over = new AbortController()
    const options = { signal: over.signal }
    const reply = once(this.#worker, 'message', options).then(([message]) => message as Reply)
    const exit = once(this.#worker, 'exit', options).then((): Reply => ({ problem: 'it failed' }))
    const late = delay(Math.max(this.#budgetMs, 0), null, options).then(() => null)
    try {
      this.#worker.postMessage({ text, limit })
      return this.#read(await Promise.race([reply, exit, late]), text)
    } finally {
      over.abort()
      await Promise.allSettled([reply, exit, late])
      this.#budgetMs -= performance.now() - started
    }
  }

  #read(answer: Reply | null, text: string): LineMatches {
    if (answer === null) {
      const problem =
        `the regular expression took longer than ${REGEX_BUDGET_MS} ms; use a simpler one, ` +
        'without a repetition inside a repetition'
      return { matches: [], problem }
    }
    if (answer.problem !== undefined) {
      const problem =
        `the pattern cannot be used as a regular expression: ${answer.problem}; ` +
        'correct it, or leave out regex to search for the text itself'
      return { matches: [], problem }
    }
    const found = answer.matches ?? []
    const lines = found.length === 0 ? [] : text.split('\n')
    const matches = found.map(([index, at]) => {
      const line = lines[index]?.replace(/\r$/, '') ?? ''
      return { line: index + 1, text: excerpt(line, at) }
    })
    return { matches }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

interface Reply {
  readonly matches?: readonly (readonly [index: number, at: number])[]
  readonly problem?: string
}

/** A line, or the part of a long one that a match at `at` is in. */
function excerpt(line: string, at: number): string {
  if (line.length <= MAX_LINE) return line
  const start = Math.max(0, Math.min(at - 50, line.length - MAX_LINE))
  const part = line.slice(start, start + MAX_LINE)
  return `${start > 0 ? '…' : ''}${part}${start + MAX_LINE < line.length ? '…' : ''}`
}
