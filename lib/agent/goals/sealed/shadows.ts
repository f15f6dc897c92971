/**
 * New modules that take the place of others: of a file of the check by another extension or by a
 * file beside its folder, and of Python's library by a module in a folder that is searched first.
 *
 * @module
 */
import { posix } from 'node:path'

import { foldersAbove } from '../../workspace/net-changes.js'
import { readFolder } from '../../workspace/read-folder.js'
import type { GoalSpec } from '../../goal.js'
import { isInTestTree, languageOf, withoutExtension } from './file-kinds.js'
import { PYTHON_LIBRARY, PYTHON_PACKAGES } from './python-names.js'
import { pythonPath } from './python-path.js'
import type { TextReader } from './read-texts.js'

/** Would this new file be loaded in the place of another? */
export type ShadowTest = (path: string) => boolean

/** Modules are found without their extension, the first of several by rules of each tool. */
export function shadowsFilesOf(baseline: Iterable<string>): ShadowTest {
  const scripts = new Set<string>()
  const modules = new Set<string>()
  const folders = new Set<string>()
  for (const path of baseline) {
    const bare = withoutExtension(path)
    if (languageOf(path) === 'python') {
      modules.add(bare)
      for (const folder of foldersAbove(path)) folders.add(folder)
    } else if (isScript(path) && posix.basename(path) !== 'package.json') {
      scripts.add(bare)
      if (posix.basename(bare) === 'index') scripts.add(posix.dirname(path))
    }
  }
  return (path) => {
    if (scripts.has(path) || (isScript(path) && scripts.has(withoutExtension(path)))) return true
    // A package goes before the module of its name.
    if (foldersAbove(path).some((folder) => modules.has(folder))) return true
    if (!PYTHON_MODULE.test(path)) return false
    const bare = moduleOf(path)
    return modules.has(bare) || folders.has(bare)
  }
}

const PYTHON_MODULE = /\.(?:py|so|pyd)$/

function isScript(path: string): boolean {
  return languageOf(path) === 'javascript' || /\.(?:json|node|wasm)$/.test(path)
}

/** The path of a module: `a/json.cpython-312.so` is `a/json`. */
function moduleOf(path: string): string {
  const name = posix.basename(path)
  return path.slice(0, path.length - name.length) + name.split('.', 1)[0]!
}

/** What decides which Python modules are searched for where. */
export interface PythonPlaces {
  readonly root: string
  readonly goal: GoalSpec
  readonly baseline: readonly string[]
  readonly kept: ReadonlySet<string>
  /** All files of the workspace. */
  readonly files: ReadonlySet<string>
  readonly texts: Pick<TextReader, 'read'>
}

const MAX_TEXTS = 500
const MAX_NAMES = 20_000

/** Python takes a module of the workspace before that of its library or of a package. */
export async function shadowsPythonModules(places: PythonPlaces): Promise<ShadowTest> {
  const { baseline, kept, goal } = places
  const tests = baseline.filter((path) => languageOf(path) === 'python')
  const isPython = goal.reporter === 'pytest' || goal.reporter === 'unittest'
  if (tests.length === 0 && !isPython && !/python/.test(goal.command)) return () => false
  const given = `${goal.command}\nPYTHONPATH=${goal.env['PYTHONPATH'] ?? ''}`
  const named = (await pythonPath(given, places.texts)).map((path) => path.replace(/\/$/, ''))
  const roots = new Set([...searchedFolders(places, tests), ...named])
  const names = await namesInUse(places, tests)
  const before = new Set([...kept].flatMap((path) => [moduleOf(path), ...foldersAbove(path)]))
  const modules = new Set(
    tests.flatMap((path) => [...roots].flatMap((folder) => within(folder, packageOf(path)) ?? [])),
  )
  return (path) => {
    if (!PYTHON_MODULE.test(path) && posix.extname(path) !== '') return false
    for (const folder of roots) {
      const rest = within(folder, path)
      if (rest === null) continue
      if (folder !== '' && PYTHON_MODULE.test(path) && modules.has(packageOf(rest))) return true
      const name = rest.split(/[/.]/, 1)[0]!
      const module = folder === '' ? name : `${folder}/${name}`
      if (names.has(name) && !before.has(module)) return true
    }
    return false
  }
}

/** A path below a folder; null for others. */
function within(folder: string, path: string): string | null {
  if (folder === '') return path
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : null
}

/** What a module is imported as, with slashes. */
function packageOf(path: string): string {
  return moduleOf(path).replace(/\/__init__$/, '')
}

/** Folders from which Python may import: the workspace, `src`, and those of scripts and tests. */
function searchedFolders(places: PythonPlaces, tests: readonly string[]): ReadonlySet<string> {
  const { goal, files } = places
  const roots = new Set([''])
  for (const source of ['src', 'lib']) {
    const holdsPackage = [...files].some((path) => {
      const [folder, , name, ...more] = path.split('/')
      return folder === source && name === '__init__.py' && more.length === 0
    })
    if (!files.has(`${source}/__init__.py`) && holdsPackage) roots.add(source)
  }
  const known = new Set(tests)
  // A new one among tests is left out.
  const isPackage = (folder: string): boolean => {
    const path = `${folder}/__init__.py`
    return files.has(path) && (known.has(path) || !isInTestTree(path))
  }
  for (const path of tests) {
    const [own, ...above] = foldersAbove(path).toReversed()
    if (own === undefined) continue
    if (goal.reporter === null) roots.add(own)
    roots.add([own, ...above].find((folder) => !isPackage(folder)) ?? '')
  }
  return roots
}

/** Names that mean modules outside of the workspace. */
async function namesInUse(
  { root, texts, files }: PythonPlaces,
  tests: readonly string[],
): Promise<ReadonlySet<string>> {
  const names = new Set([...PYTHON_LIBRARY, 'pytest', '_pytest', 'pluggy', 'sitecustomize'])
  for (const venv of ['.venv', 'venv']) {
    for (const version of await readFolder(`${root}/${venv}/lib`, 10)) {
      const packages = `${root}/${venv}/lib/${version.name}/site-packages`
      for (const { name } of await readFolder(packages, MAX_NAMES)) {
        if (!name.includes('-info')) names.add(name.split('.', 1)[0]!)
      }
    }
  }
  for (const path of tests.slice(0, MAX_TEXTS)) {
    const text = (await texts.read(path)) ?? ''
    for (const [, name] of text.matchAll(/^[ \t]*(?:from|import)[ \t]+(\w+)/gm)) {
      if (PYTHON_PACKAGES.has(name!)) names.add(name!)
    }
  }
  for (const path of files) {
    if (!/^(?:requirements[\w.-]*\.txt|pyproject\.toml)$/.test(path)) continue
    const text = (await texts.read(path)) ?? ''
    for (const name of requirementsIn(text, path.endsWith('.toml'))) names.add(name)
  }
  return names
}

const QUOTED_REQUIREMENT = /["']([A-Za-z][\w.-]{0,100})(?:\[[\w,. -]{0,100}\])?[ ]?(?:[<>~!]=?|==)/g
const REQUIREMENT = /^([A-Za-z][\w.-]{0,100})[ ]?(?:$|[[<>=~!;#])/gm

/** Names of packages, as they are imported. */
function requirementsIn(text: string, isToml: boolean): readonly string[] {
  const found = [...text.matchAll(isToml ? QUOTED_REQUIREMENT : REQUIREMENT)]
  return found.map(([, name]) => name!.toLowerCase().replaceAll('-', '_'))
}

/** A compiler looks into the folders that it is given first. */
export function isSystemHeader(path: string): boolean {
  return SYSTEM_HEADER.test(posix.basename(path))
}

const SYSTEM_HEADER = new RegExp(
  '^c?(?:assert|ctype|errno|float|inttypes|limits|locale|math|setjmp|signal|stdarg|stdbool|' +
    'stddef|stdint|stdio|stdlib|string|time|unistd)(?:\\.h)?$',
)
