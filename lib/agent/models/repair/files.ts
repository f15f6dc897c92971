import { languageOf, type SourceFile } from './source.js'
import { stringBody } from './token.js'

/** Matches dependencies, build results and hidden folders. */
const FOREIGN = new RegExp(
  '(^|/)(node_modules|\\.git|dist|build|out|coverage|vendor|third_party|' +
    '\\.venv|venv|__pycache__|site-packages|\\.[^/]+)/|\\.d\\.[mc]?ts$|\\.min\\.js$',
)
const CONFIGURATION = new RegExp(
  '(^|/)([\\w.-]+\\.config\\.[mc]?[jt]s|setup\\.py|noxfile\\.py|tasks\\.py|' +
    'gulpfile\\.[mc]?js|Gruntfile\\.js)$',
)
const TEST = new RegExp(
  '(^|/)(tests?|__tests__|specs?|testing|fixtures|__mocks__)/|[._-](test|spec)\\.[mc]?[jt]sx?$|' +
    '(^|/)test[._-][^/]*\\.\\w+$|(^|/)tests?\\.\\w+$|_test\\.\\w+$|(^|/)conftest\\.py$',
)

/** Whether a file belongs to the tests, which are read but never written. */
export function isTestPath(path: string): boolean {
  return TEST.test(path)
}

/** Whether a file may be repaired. */
export function isSourcePath(path: string): boolean {
  return (
    languageOf(path) !== null &&
    !FOREIGN.test(path) &&
    !CONFIGURATION.test(path) &&
    !isTestPath(path)
  )
}

/** Whether a file may be read. */
export function isReadablePath(path: string): boolean {
  return languageOf(path) !== null && !FOREIGN.test(path)
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
  const match = (printed: string): void => {
    const path = paths
      .filter((candidate) => printed === candidate || printed.endsWith(`/${candidate}`))
      .sort((a, b) => b.length - a.length)[0]
    if (path !== undefined) found.add(path)
  }
  if (kind === 'tap') {
    let failed = false
    for (const line of output.split('\n')) {
      const point = /^ *(not ok|ok) \d/.exec(line)
      if (point !== null) failed = point[1] === 'not ok'
      const location = /^ *location: '(.*):\d+:\d+'$/.exec(line)
      if (location !== null && failed) match(location[1]!)
    }
  }
  for (const name of failing) {
    if (kind === 'pytest') match(name.replace(/^ERROR /, '').split('::')[0]!)
    if (kind === 'unittest') {
      const parts = name.replace('unittest.loader._FailedTest.', '').split('.')
      for (let length = parts.length; length > 0; length--) {
        const tail = `${parts.slice(0, length).join('/')}.py`
        const path = paths.find((candidate) => candidate === tail || candidate.endsWith(`/${tail}`))
        if (path === undefined) continue
        found.add(path)
        break
      }
    }
  }
  return [...found].sort()
}
