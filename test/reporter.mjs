/**
 * Reports a run of tests for a person: failures with their errors when they happen, then the
 * slowest tests, every failure once more by name, and the totals.
 */
import { existsSync, readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

const SLOWEST = 5
const root = fileURLToPath(new URL('..', import.meta.url))

/** @typedef {{ name: string, nesting: number, file?: string, details?: Details, message?: string }} Data */
/** @typedef {{ duration_ms: number, type?: string, error?: Failure }} Details */
/** @typedef {Error & { failureType?: string }} Failure */

/** @param {AsyncIterable<{ type: string, data: Data & { skip?: unknown, todo?: unknown } }>} events */
export default async function* report(events) {
  const began = performance.now()
  const count = { passed: 0, failed: 0, skipped: 0 }
  /** The names of the running test and of those it is part of. @type {string[]} */
  const path = []
  /** @type {string[]} */
  const failures = []
  /** @type {{ name: string, ms: number }[]} */
  const slowest = []
  /** Tests that have begun and not ended, by file. @type {Map<string, Set<string>>} */
  const begun = new Map()
  for await (const { type, data } of events) {
    const { file = '' } = data ?? {}
    if (type === 'test:dequeue') begun.set(file, (begun.get(file) ?? new Set()).add(data.name))
    if (type === 'test:complete') begun.get(file)?.delete(data.name)
    if (type === 'test:stdout' || type === 'test:stderr') yield data.message ?? ''
    if (type === 'test:start') path.splice(data.nesting, Infinity, data.name)
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const { details } = data
    if (details?.type === 'suite') continue
    const name = [...path.slice(0, data.nesting), data.name].join(' > ')
    if (data.skip !== undefined || data.todo !== undefined) count.skipped++
    else if (type === 'test:pass') count.passed++
    else count.failed++
    slowest.push({ name, ms: details?.duration_ms ?? 0 })
    if (slowest.length > 1000) keepSlowest(slowest)
    const error = details?.error
    if (type !== 'test:fail' || data.todo !== undefined) continue
    if (error?.failureType === 'subtestsFailed') continue
    failures.push(name)
    yield `\n✖ ${name}\n${indent(inSources(inspect(error?.cause ?? error)))}\n`
    const unfinished = [...(begun.get(file) ?? [])].filter((one) => one !== data.name)
    if (error?.failureType === 'testTimeoutFailure' && unfinished.length > 0)
      yield `  while it was in: ${unfinished.join(' > ')}\n`
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  const lines = keepSlowest(slowest).map(({ name, ms }) => `  ${ms.toFixed(0)} ms  ${name}\n`)
  yield `\nslowest:\n${lines.join('')}`
  if (failures.length > 0) yield `failed:\n${failures.map((name) => `  ${name}\n`).join('')}`
  yield `in ${seconds} s:\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`
}

/** @param {{ name: string, ms: number }[]} tests */
function keepSlowest(tests) {
  tests.sort((a, b) => b.ms - a.ms).length = Math.min(tests.length, SLOWEST)
  return tests
}

/** @param {string} text */
function indent(text) {
  return text.replaceAll(/^(?=.)/gm, '  ')
}

/** @type {Map<string, SourceMap | null>} */
const maps = new Map()

/**
 * Replaces positions in bundles by those in the sources. Only failures pay for it: a process that
 * runs tests reads no source map.
 *
 * @param {string} text With stack traces.
 */
function inSources(text) {
  const position = /(?:file:\/\/)?(\/[^\s():]+\.js):(\d+):(\d+)/g
  return text.replaceAll(position, (place, file, line, column) => {
    const map = maps.get(file) ?? mapOf(file)
    maps.set(file, map)
    const entry = map?.findEntry(Number(line) - 1, Number(column) - 1)
    if (entry === undefined || !('originalSource' in entry)) return place
    const source = relative(root, resolve(file, '..', entry.originalSource))
    return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
  })
}

/** @param {string} file */
function mapOf(file) {
  if (!existsSync(`${file}.map`)) return null
  return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')))
}
