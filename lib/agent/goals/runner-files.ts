/**
 * What belongs to a test runner itself: its packages in the workspace, and the files that its
 * configuration names. Read only when a goal is resolved.
 *
 * @module
 */
import { join, posix } from 'node:path'

import { GoalError } from '../errors.js'
import { readFolder } from '../workspace/read-folder.js'
import { compileGlobs } from '../workspace/globs.js'
import { readSmallFile } from './small-file.js'

/** Assertion libraries, which can make every test pass as well as the runner can. */
const ASSERTIONS = ['chai', 'expect', 'should', 'power-assert', 'assert']
const PYTHON_PACKAGES = ['pytest', '_pytest', 'pluggy', 'sitecustomize.py']
const MAX_PACKAGES = 200
/** Names read from one folder. */
const MAX_NAMES = 20_000

/**
 * Packages and programs in `node_modules` that match `wanted`, and assertion libraries. Only what
 * is installed now: a run may install what is missing.
 */
export async function nodePackages(
  cwd: string,
  wanted: readonly string[] = [],
): Promise<readonly string[]> {
  const globs = [...wanted, ...ASSERTIONS]
  const isWanted = compileGlobs(globs)
  const names = await namesIn(join(cwd, 'node_modules'))
  const scopes = names.filter((name) => globs.some((glob) => glob.startsWith(`${name}/`)))
  const scoped = await Promise.all(
    scopes.map(async (scope) =>
      (await namesIn(join(cwd, 'node_modules', scope))).map((name) => `${scope}/${name}`),
    ),
  )
  const programs = (await namesIn(join(cwd, 'node_modules/.bin'))).filter(isWanted)
  return [
    ...[...names, ...scoped.flat()].filter(isWanted).map((name) => `node_modules/${name}`),
    ...programs.map((name) => `node_modules/.bin/${name}`),
  ]
    .sort()
    .slice(0, MAX_PACKAGES)
}

/** pytest's packages in the virtual environments of the workspace. */
export async function pythonPackages(cwd: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const venv of ['.venv', 'venv']) {
    for (const version of await namesIn(join(cwd, venv, 'lib'))) {
      const packages = posix.join(venv, 'lib', version, 'site-packages')
      const names = await namesIn(join(cwd, packages))
      // Python runs the code in .pth files whenever it starts.
      const own = names.filter((name) => PYTHON_PACKAGES.includes(name) || name.endsWith('.pth'))
      for (const name of own) found.push(posix.join(packages, name))
    }
  }
  return found.sort().slice(0, MAX_PACKAGES)
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readFolder(folder, MAX_NAMES)).map(({ name }) => name).sort()
}

const CONFIGURATION =
  /^(?:(?:jest|vitest|vite|mocha|\.mocharc|\.c8rc|\.nycrc)(?:\.[\w.-]+)?|package\.json)$/

/** Settings whose values are files that a runner loads before, around or in the place of tests. */
const SETTING = new RegExp(
  `["']?(?:${[
    ...['setupFiles\\w{0,20}', 'globalSetup', 'globalTeardown', '(?:testE|e)nvironment'],
    ...['(?:testR|r)unner', 'transform', '(?:snapshotR|r)esolver', 'reporters?'],
    ...['snapshotSerializers', 'require', 'file', 'import', 'loader', 'testSequencer', 'preset'],
    ...['extends', 'dependencyExtractor', 'testResultsProcessor', 'snapshotEnvironment'],
    'script-shell',
  ].join('|')})["']?\\s*[:=]\\s*`,
  'g',
)
const QUOTED_OR_PLAIN = /["'`][^"'`\n]*["'`]|(?:\n\s*)?[-\w./ ]+/y
const MAX_CONFIGURATIONS = 20
/** Different words in values; each may be a file. */
const MAX_NAMED = 1_000

/**
 * Files of the workspace that the configuration of JavaScript runners names.
 *
 * @throws {@link GoalError} when it names too many.
 */
export async function configuredFiles(cwd: string): Promise<readonly string[]> {
  const names = (await namesIn(cwd)).filter((name) => CONFIGURATION.test(name))
  const words = new Set<string>()
  for (const name of names.slice(0, MAX_CONFIGURATIONS)) {
    const text = settingsOf(name, (await readSmallFile(join(cwd, name))) ?? '')
    for (const value of settingValues(text)) {
      for (const [word] of value.matchAll(/[\w@<>./-]+/g)) if (/[./]/.test(word)) words.add(word)
    }
  }
  if (words.size > MAX_NAMED) {
    throw new GoalError(
      'unsuitable',
      `the configuration of test runners names more than ${MAX_NAMED} files; put them in a folder`,
    )
  }
  const found = new Set<string>()
  for (const word of words) {
    const path = posix.normalize(word.replace('<rootDir>/', './'))
    if (path.startsWith('..') || path.startsWith('/')) continue
    for (const candidate of [path, `${path}.js`, `${path}.ts`, `${path}.cjs`, `${path}.mjs`]) {
      if ((await readSmallFile(join(cwd, candidate))) !== null) found.add(candidate)
    }
  }
  found.delete('package.json')
  return [...found].sort()
}

/** What is written after the names of settings that name files. */
export function* settingValues(text: string): Generator<string> {
  // In a text without a closing bracket nothing is searched for another one.
  const last = { '[': text.lastIndexOf(']'), '{': text.lastIndexOf('}') }
  SETTING.lastIndex = 0
  while (SETTING.exec(text) !== null) {
    const at = SETTING.lastIndex
    const open = text.charAt(at)
    if (open === '[' || open === '{') {
      if (last[open] < at) continue
      SETTING.lastIndex = text.indexOf(open === '[' ? ']' : '}', at) + 1
    } else {
      QUOTED_OR_PLAIN.lastIndex = at
      if (QUOTED_OR_PLAIN.exec(text) === null) continue
      SETTING.lastIndex = QUOTED_OR_PLAIN.lastIndex
    }
    yield text.slice(at, SETTING.lastIndex)
  }
}

/** Modules that settings of pytest, or its files, name as plugins: `tools.strict`. */
export function pythonPlugins(text: string): readonly string[] {
  const found: string[] = []
  for (const [, plain, list] of text.matchAll(PLUGINS)) {
    for (const [name] of (plain ?? list ?? '').matchAll(/[\w.]+/g)) found.push(name)
  }
  return found
}

const PLUGINS =
  /(?:^|[\s"'=])-p["', =]{0,8}([A-Za-z_][\w.]*)|\bpytest_plugins\b[^=\n]{0,100}=([^=\])]{0,4000})/g

/** Of package.json only what concerns runners. */
function settingsOf(name: string, text: string): string {
  if (name !== 'package.json') return text
  try {
    const { jest, mocha, vitest, nyc, c8 } = JSON.parse(text) as Record<string, unknown>
    return JSON.stringify({ jest, mocha, vitest, nyc, c8 })
  } catch {
    return ''
  }
}
