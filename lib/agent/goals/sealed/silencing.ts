/**
 * What silences a compiler or linter in the code itself: comments, and TypeScript's `any`. A check
 * that is nothing but such a program is not met by more of these than there were at the start.
 * Tests are not counted: those of the start are compared, and new ones are left out.
 *
 * @module
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'

import type { GoalSpec } from '../../goal.js'
import { compileGlobs, type PathMatcher } from '../../workspace/globs.js'
import { JS_TESTS, PYTHON_TESTS, TEST_TREES } from '../test-files.js'
import { listFiles } from './list-files.js'
import { TextReader } from './read-texts.js'

/** How often each way to silence is found, by its text. */
export type Silencing = Readonly<Record<string, number>>

const TOOLS = new RegExp(
  `(?:^|[^\\w.-])(?:${[
    ...['tsc', 'tsgo', 'vue-tsc', 'svelte-check', 'flow', 'eslint', 'oxlint', 'biome', 'standard'],
    ...['xo', 'stylelint', 'ruff', 'flake8', 'pylint', 'mypy', 'pyright', 'basedpyright'],
    ...['clippy', 'golangci-lint', 'staticcheck', 'shellcheck'],
  ].join('|')})(?![\\w-]|\\.(?!js\\b))`,
)
const SOURCES = /\.(?:[cm]?[jt]sx?|vue|svelte|pyi?|rs|go|sh|bash|s?css)$/
const COMMENTS = new RegExp(
  [
    ...['@ts-nocheck', '@ts-ignore', '@ts-expect-error', '\\$Flow(?:FixMe|Ignore|ExpectedError)'],
    ...['(?:eslint|oxlint|stylelint)-disable(?:-next-line|-line)?', 'biome-ignore(?:-all)?'],
    ...['type: *ignore', 'pyright: *(?:ignore|basic)', 'mypy: *ignore'],
    ...['(?:(?:ruff|flake8): *)?noqa', 'pylint: *(?:disable|skip-file)', 'shellcheck disable'],
    ...['#!?\\[(?:allow|expect)\\(', '//(?:nolint|lint:ignore)'],
  ].join('|'),
  'g',
)
const TYPESCRIPT = /\.[cm]?tsx?$/
/** Not in prose, where another word follows. */
const ANY = /(?:\bas\s|[:<,|&=])[ \t]*any\b(?![ \t]+(?!as\b|satisfies\b|extends\b)\w)/g
const IS_TEST: PathMatcher = compileGlobs([...JS_TESTS, ...PYTHON_TESTS, ...TEST_TREES])

/**
 * Counts them, for a check that is nothing but a compiler or linter; else null.
 *
 * @throws as {@link listFiles} does.
 */
export async function silencingIn(
  { reporter }: GoalSpec,
  script: string,
  cwd: string,
  signal?: AbortSignal,
): Promise<Silencing | null> {
  if (reporter !== null || !TOOLS.test(script)) return null
  const found: Record<string, number> = {}
  for await (const [, marks] of marksIn(cwd, signal)) {
    for (const mark of marks) found[mark] = (found[mark] ?? 0) + 1
  }
  return found
}

/**
 * What was added since: a phrase for each.
 *
 * @param since time of the file system in ms, after which a change is one of the run's
 * @throws as {@link listFiles} does.
 */
export async function silencedSince(
  cwd: string,
  before: Silencing,
  since: number,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const counts = new Map<string, number>()
  const places = new Map<string, string>()
  for await (const [path, marks] of marksIn(cwd, signal)) {
    for (const mark of marks) counts.set(mark, (counts.get(mark) ?? 0) + 1)
    const changed = await stat(join(cwd, path)).then(({ ctimeMs }) => ctimeMs > since, () => false)
    if (changed) for (const mark of marks) places.set(mark, path)
  }
  return [...counts]
    .filter(([mark, count]) => count > (before[mark] ?? 0))
    .map(([mark]) => `"${mark}" was added in ${places.get(mark) ?? 'a file'}`)
}

/** Each file that holds any, with all that it holds. */
async function* marksIn(
  cwd: string,
  signal?: AbortSignal,
): AsyncGenerator<readonly [path: string, marks: readonly string[]]> {
  const texts = new TextReader(cwd)
  for (const { path, kind } of await listFiles(cwd, signal)) {
    if (kind !== 'file' || !SOURCES.test(path) || IS_TEST(path)) continue
    signal?.throwIfAborted()
    const text = (await texts.read(path)) ?? ''
    const comments = text.match(COMMENTS) ?? []
    const anys = TYPESCRIPT.test(path) ? (text.match(ANY) ?? []) : []
    const marks = [...comments.map((one) => one.replaceAll(' ', '')), ...anys.map(() => 'any')]
    if (marks.length > 0) yield [path, marks]
  }
}
