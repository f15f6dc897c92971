import { plainText } from './read-report.js'
import { testLines } from './report-lines.js'
import { parseFrames } from './report.js'
import { languageOf, type SourceFile } from './source.js'
import { stringBody } from './token.js'

/** Matches dependencies, build results and hidden folders. */
const FOREIGN = new RegExp(
  '(^|/)(node_modules|\\.git|dist|coverage|vendor|third_party|' +
    '\\.venv|venv|__pycache__|site-packages|\\.[^/]+)/|\\.d\\.[mc]?ts$|\\.min\\.js$',
)
/** Build results as well, unless they are among sources. */
const BUILT = /(^|\/)(build|out)\//
const SOURCES = /(^|\/)(src|lib)\//
const CONFIGURATION = new RegExp(
  '(^|/)([\\w.-]+\\.config\\.[mc]?[jt]s|setup\\.py|noxfile\\.py|' +
    'gulpfile\\.[mc]?js|Gruntfile\\.js)$',
)
const TEST = new RegExp(
  '(^|/)(tests?|__tests__|specs?|testing|fixtures|__mocks__)/|[._-](test|spec)\\.[mc]?[jt]sx?$|' +
    '(^|/)test[._-][^/]*\\.\\w+$|(^|/)tests?\\.\\w+$|_test\\.\\w+$|(^|/)conftest\\.py$',
)

function isForeign(path: string): boolean {
  const sources = SOURCES.exec(path)?.index ?? path.length
  return FOREIGN.test(path) || BUILT.test(path.slice(0, sources + 1))
}

/** Whether a file belongs to the tests, which are read but never written. */
export function isTestPath(path: string): boolean {
  return TEST.test(path)
}

/** Whether a file may be repaired. */
export function isSourcePath(path: string): boolean {
  return (
    languageOf(path) !== null &&
    !isForeign(path) &&
    !CONFIGURATION.test(path) &&
    !isTestPath(path)
  )
}

/** Whether a file may be read. */
export function isReadablePath(path: string): boolean {
  return languageOf(path) !== null && !isForeign(path)
}

/** The members of `paths` that a file imports. */
export function importsOf(file: SourceFile, paths: ReadonlySet<string>): string[] {
  const found =
    file.language === 'python' ? pythonImports(file, paths) : javaScriptImports(file, paths)
  return [...new Set(found)].filter((path) => path !== file.path)
}

function javaScriptImports(file: SourceFile, paths: ReadonlySet<string>): string[] {
  const folder = file.path.split('/').slice(0, -1)
  return file.tokens.flatMap((token, at) => {
    const before = file.tokens[at - 1]?.text
    if (token.kind !== 'string' || !['from', 'import', '('].includes(before ?? '')) return []
    const specifier = stringBody(token.text)?.body ?? ''
    if (!specifier.startsWith('.')) return []
    const parts = [...folder]
    for (const part of specifier.split('/')) {
      if (part === '..') parts.pop()
      else if (part !== '.' && part !== '') parts.push(part)
    }
    const base = parts.join('/')
    const bare = base.replace(/\.[mc]?[jt]sx?$/, '')
    const extensions = ['js', 'mjs', 'cjs', 'ts', 'mts', 'cts', 'tsx', 'jsx']
    const options = [
      base,
      ...extensions.flatMap((extension) => [
        `${bare}.${extension}`,
        `${base}.${extension}`,
        `${base}/index.${extension}`,
      ]),
    ]
    const hit = options.find((path) => paths.has(path))
    return hit === undefined ? [] : [hit]
  })
}

function pythonImports(file: SourceFile, paths: ReadonlySet<string>): string[] {
  const found: string[] = []
  const add = (module: string): void => {
    const parts = module.split('.').filter((part) => part !== '')
    if (parts.length === 0) return
    const tail = parts.join('/')
    for (const path of paths) {
      if (
        path === `${tail}.py` ||
        path.endsWith(`/${tail}.py`) ||
        path === `${tail}/__init__.py` ||
        path.endsWith(`/${tail}/__init__.py`)
      )
        found.push(path)
    }
  }
  for (const [, from, names] of file.text.matchAll(
    /^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([\w, \t\n]+)/gm,
  )) {
    add(from!)
    for (const name of names!.split(/[\s,]+/))
      if (/^\w+$/.test(name) && name !== 'as') add(`${from!}.${name}`)
  }
  for (const [, names] of file.text.matchAll(/^[ \t]*import[ \t]+([\w., \t]+)/gm)) {
    for (const name of names!.split(',')) add(name.trim().split(/\s+/)[0]!)
  }
  return found
}

/** Files of the workspace that contain failing tests, as far as the report shows. */
export function failingFiles(
  kind: string,
  output: string,
  failing: readonly string[],
  paths: readonly string[],
): string[] {
  const found = new Set<string>()
  const byName = new Map<string, string[]>()
  for (const path of paths) {
    const name = path.slice(path.lastIndexOf('/') + 1)
    byName.set(name, [...(byName.get(name) ?? []), path])
  }
  /** The longest path that ends what was printed. */
  const match = (printed: string): boolean => {
    const clean = printed.replace(/^file:\/\//, '').replace(/^\.\//, '')
    const [path] = (byName.get(clean.slice(clean.lastIndexOf('/') + 1)) ?? [])
      .filter((candidate) => clean === candidate || clean.endsWith(`/${candidate}`))
      .sort((a, b) => b.length - a.length)
    if (path !== undefined) found.add(path)
    return path !== undefined
  }
  if (kind === 'tap') {
    for (const name of failing) for (const part of name.split(' > ', 2)) match(part)
    for (const path of placesOfFailures(output)) if (isTestPath(path)) match(path)
    for (const name of failing) matchTitle(name, paths, match)
  }
  if (kind === 'lines') {
    for (const { outcome, file } of testLines(plainText(output)))
      if (outcome === 'fail') match(file)
  }
  for (const name of failing) {
    if (kind === 'pytest') match(name.replace(/^ERROR /, '').split('::')[0]!)
    if (kind === 'unittest') {
      const parts = name.replace('unittest.loader._FailedTest.', '').split('.')
      for (let length = parts.length; length > 0; length--)
        if (matchTail(`${parts.slice(0, length).join('/')}.py`, byName, found)) break
    }
  }
  return [...found].sort()
}

/** Adds the first path with this end. */
function matchTail(
  tail: string,
  byName: ReadonlyMap<string, readonly string[]>,
  found: Set<string>,
): boolean {
  const path = (byName.get(tail.slice(tail.lastIndexOf('/') + 1)) ?? []).find(
    (candidate) => candidate === tail || candidate.endsWith(`/${tail}`),
  )
  if (path !== undefined) found.add(path)
  return path !== undefined
}

/** AVA names a file by its path below the folder of tests, without its extension: `util › adds`. */
function matchTitle(
  name: string,
  paths: readonly string[],
  match: (path: string) => unknown,
): void {
  const parts = name.split(' › ')
  if (parts.length < 2) return
  for (let length = parts.length - 1; length > 0; length--) {
    const stem = parts.slice(0, length).join('/')
    const matching = paths.filter((candidate) => {
      const bare = candidate.replace(/(?:[.-](?:test|spec))?\.[cm]?[jt]sx?$/, '')
      const plain = bare.replace(/(^|\/)test-([^/]*)$/, '$1$2')
      return isTestPath(candidate) && (plain === stem || plain.endsWith(`/${stem}`))
    })
    for (const path of matching) match(path)
    if (matching.length > 0) return
  }
}

/** Paths that a report in the Test Anything Protocol prints for its failed points. */
function placesOfFailures(output: string): Set<string> {
  const found = new Set<string>()
  let failed = false
  for (const line of plainText(output).split('\n')) {
    const point = /^ *(not ok|ok) \d/.exec(line)
    if (point !== null) failed = point[1] === 'not ok'
    if (!failed) continue
    const place = /^ *(location|at|fileName): (.*)$/.exec(line)
    if (place === null) continue
    const said = place[2]!.replace(/^['"]|['"]$/g, '')
    if (place[1] === 'fileName') found.add(said)
    else if (/^[^()]*:\d+:\d+$/.test(said)) found.add(said.replace(/:\d+:\d+$/, ''))
    else for (const { file } of parseFrames(said)) found.add(file)
  }
  return found
}
