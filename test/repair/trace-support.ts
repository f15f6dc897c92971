/** Small projects whose tests run with and without a watch. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

import { readTrace, watch, type Trace } from '../../lib/repair/trace/trace.js'

/** An empty private folder. */
export async function privateFolder(t: TestContext): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'trace-test-')))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** What a command did. */
export interface Ran {
  readonly status: number | null
  /** Standard output and error, without times. */
  readonly output: string
}

/** Runs a command in a project. */
export function run(cwd: string, command: string, env: NodeJS.ProcessEnv = {}): Ran {
  const { PATH, HOME } = process.env
  const python = { PYTHONDONTWRITEBYTECODE: '1', PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1' }
  // Node hands NODE_V8_COVERAGE on to what it starts unless told otherwise, and where something
  // counts already, no trace is taken.
  const base = { PATH, HOME, NODE_V8_COVERAGE: undefined, ...python }
  const options = { cwd, env: { ...base, ...env }, encoding: 'utf8' } as const
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], options)
  const varying = /[\d.]+ ?m?s\b|_ms:? [\d.]+|0x[0-9a-f]+/g
  const output = `${stdout}${stderr}`.replaceAll(varying, '(varies)')
  return { status, output }
}

/**
 * Runs a command with a watch and without one, asserts that both did the same, and returns the
 * trace.
 */
export async function traced(t: TestContext, cwd: string, command: string): Promise<Trace> {
  const folder = await privateFolder(t)
  const plain = run(cwd, command)
  const watched = run(cwd, command, await watch(folder, cwd))
  assert.deepEqual(watched, plain)
  return readTrace(folder)
}

/** The lines of a file, each with the names of the tests that ran it after their file's name. */
export function lines(trace: Trace, path: string): Readonly<Record<number, string>> {
  const found = trace.files.get(path) ?? new Map<number, readonly number[]>()
  const title = (test: number): string => trace.tests[test]!.name.replace(/^.*? > /, '')
  return Object.fromEntries([...found].map(([line, tests]) => [line, tests.map(title).join(', ')]))
}

/** The tests with their outcomes. */
export function outcomes(trace: Trace): Readonly<Record<string, boolean | null>> {
  return Object.fromEntries(trace.tests.map(({ name, failed }) => [name, failed]))
}

/** A source with a branch, for CommonJS. */
export const SUMS: string = `exports.add = (a, b) => {
  if (a === 0) {
    return b
  }
  return a + b
}
exports.sub = (a, b) => {
  return a - b
}
`
/** The same as an ES module. */
export const SUMS_MODULE: string = SUMS.replaceAll('exports.', 'export const ')

/** Lines of both, where "subs" fails, but for those that have a test of another name. */
export const SUMS_LINES: Readonly<Record<number, string>> = {
  1: 'adds, adds zero',
  2: 'adds, adds zero',
  3: 'adds zero',
  4: 'adds zero',
  5: 'adds',
  6: 'adds, adds zero',
  7: 'many > subs',
  8: 'many > subs',
  9: 'many > subs',
}
