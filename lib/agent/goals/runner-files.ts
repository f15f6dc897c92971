/**
 * What belongs to a test runner itself: its packages in the workspace, and the files that its
 * configuration names. Read only when a goal is resolved.
 *
 * @module
 */
import { join, posix } from 'node:path'

import { readFolder } from '../workspace/read-folder.js'
import { compileGlobs } from './globs.js'
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
      found.push(...own.map((name) => posix.join(packages, name)))
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
    ...['setupFiles\\w*', 'globalSetup', 'globalTeardown', 'testEnvironment', 'environment'],
    ...['runner', 'testRunner', 'transform', 'resolver', 'reporters', 'snapshotSerializers'],
    ...['require', 'file', 'import', 'loader', 'testSequencer', 'preset', 'extends'],
  ].join(
    '|',
  )})["']?\\s*[:=]\\s*(\\[[^\\]]*\\]|\\{[^}]*\\}|["'\`][^"'\`\\n]*["'\`]|(?:\\n\\s*)?[-\\w./ ]+)`,
  'g',
)
const MAX_CONFIGURATIONS = 20

/** Files of the workspace that the configuration of JavaScript runners names. */
export async function configuredFiles(cwd: string): Promise<readonly string[]> {
  const names = (await namesIn(cwd)).filter((name) => CONFIGURATION.test(name))
  const found = new Set<string>()
  for (const name of names.slice(0, MAX_CONFIGURATIONS)) {
    const text = settingsOf(name, (await readSmallFile(join(cwd, name))) ?? '')
    for (const [, value] of text.matchAll(SETTING)) {
      for (const [, word] of value!.matchAll(/([\w@<>./-]+)/g)) {
        const path = posix.normalize(word!.replace('<rootDir>/', './'))
        if (path.startsWith('..') || path.startsWith('/') || !/[./]/.test(path)) continue
        for (const candidate of [path, `${path}.js`, `${path}.ts`, `${path}.cjs`, `${path}.mjs`]) {
          if ((await readSmallFile(join(cwd, candidate))) !== null) found.add(candidate)
        }
      }
    }
  }
  found.delete('package.json')
  return [...found].sort()
}

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
