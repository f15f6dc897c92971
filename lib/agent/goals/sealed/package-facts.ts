import { posix } from 'node:path'

import { PACKAGE_KEYS } from '../package-hash.js'
import { withoutExtension } from './file-kinds.js'
import { groupBy } from './group-by.js'

/** What the package.json of a workspace tells about its code. */
export interface PackageFacts {
  readonly name: string | null
  /** Files among those given that it names as the code of the package. */
  readonly entries: ReadonlySet<string>
  /** Those of them that only names such as `shop/testing` lead to. */
  readonly exported: ReadonlySet<string>
  /** Files by names of imports: `#money`, and `shop/testing` in the package shop. */
  readonly aliases: ReadonlyMap<string, readonly string[]>
  /** The settings of tools in it, as text. */
  readonly tools: string
  /** The scripts that start what the package holds. */
  readonly starts: string
  /** Paths that are the whole setting of a tool, as in `"prettier": "./format.json"`. */
  readonly paths: readonly string[]
}

/** Keys of no tool. */
const OWN_KEYS = new Set([...PACKAGE_KEYS, 'scripts', 'config', 'imports'])
const CODE_KEYS = ['main', 'module', 'browser', 'exports', 'bin', 'source', 'types', 'typings']
const BUILT = /^(?:dist|build|out|lib|esm|cjs|es)\//
const MAX_STRINGS = 2_000

const NOTHING: PackageFacts = {
  name: null, entries: new Set(), exported: new Set(), aliases: new Map(), tools: '', starts: '',
  paths: [],
}

/** Files by path and by path without an extension. */
export interface FileIndex {
  readonly paths: ReadonlySet<string>
  readonly byStem: ReadonlyMap<string, readonly string[]>
}

/** Indexes the files that packages may name. */
export function indexFiles(paths: readonly string[]): FileIndex {
  return { paths: new Set(paths), byStem: groupBy(paths, withoutExtension) }
}

/** Reads the text of a package.json in `folder`; `files` are the files that it may name. */
export function readPackage(
  text: string | null,
  files: FileIndex,
  folder: string = '',
): PackageFacts {
  let parsed: unknown
  try {
    parsed = JSON.parse(text?.replace(/^\uFEFF/, '') ?? 'null')
  } catch {
    return NOTHING
  }
  if (typeof parsed !== 'object' || parsed === null) return NOTHING
  const given = parsed as Readonly<Record<string, unknown>>
  const { exports, imports } = given
  const name = typeof given['name'] === 'string' && given['name'] !== '' ? given['name'] : null
  const subpaths = keysIn(exports).filter((key) => key.startsWith('./'))
  const rest = subpaths.length === 0 ? exports : Object.fromEntries(
    Object.entries(exports as object).filter(([key]) => !key.startsWith('./')),
  )
  const named = CODE_KEYS.map((key) => (key === 'exports' ? rest : given[key]))
  const main = filesAt([...strings(named), ...INDEX], files, folder)
  const exported = filesAt(strings(subpaths.map((key) => valueOf(exports, key))), files, folder)
  for (const path of main) exported.delete(path)
  const aliases = new Map<string, readonly string[]>()
  const add = (specifier: string, value: unknown): void => {
    if (specifier.includes('*')) return
    aliases.set(specifier, [...filesAt(strings(value), files, folder)])
  }
  for (const key of subpaths) add(`${name}${key.slice(1)}`, valueOf(exports, key))
  for (const key of keysIn(imports)) add(key, valueOf(imports, key))
  const tools = Object.entries(given).filter(([key]) => !OWN_KEYS.has(key))
  return {
    name,
    entries: new Set([...main, ...exported]),
    exported,
    aliases,
    paths: tools.flatMap(([, value]) => (typeof value === 'string' ? [value] : [])),
    starts: keysIn(given['scripts'])
      .filter((key) => STARTS.test(key))
      .map((key) => String(valueOf(given['scripts'], key)))
      .join('\n'),
    tools: settingsOf(Object.fromEntries(tools)),
  }
}

const STARTS = /^(?:start|dev|develop|serve|preview|demo|build|bundle|compile|cli)(?:$|[:-])/
const INDEX: readonly string[] = ['index']

function keysIn(value: unknown): readonly string[] {
  return typeof value === 'object' && value !== null ? Object.keys(value) : []
}

function valueOf(value: unknown, key: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[key]
}

function settingsOf(tools: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(tools)
  } catch {
    // Nested more deeply than the stack allows.
    return ''
  }
}

/** The files that these paths mean, with or without an extension, built or as source. */
function filesAt(
  paths: readonly string[],
  { paths: known, byStem }: FileIndex,
  folder: string,
): Set<string> {
  const found = new Set<string>()
  for (const named of paths) {
    const plain = posix.normalize(named)
    const bare = withoutExtension(plain).replace(/\.d$/, '')
    // What is built is in the workspace as its source.
    const built = BUILT.test(bare) ? ['src/', 'lib/'] : []
    const sources = built.map((one) => bare.replace(BUILT, one))
    const path = posix.join(folder, plain)
    if (known.has(path)) found.add(path)
    for (const stem of [plain, bare, ...sources].map((one) => posix.join(folder, one))) {
      for (const file of [...(byStem.get(stem) ?? []), ...(byStem.get(`${stem}/index`) ?? [])]) {
        found.add(file)
      }
    }
  }
  return found
}

/** All strings in a value, up to a bound. */
function strings(value: unknown): readonly string[] {
  const found: string[] = []
  const left: unknown[] = [value]
  while (left.length > 0 && found.length < MAX_STRINGS) {
    const one = left.pop()
    if (typeof one === 'string') found.push(one)
    else if (typeof one === 'object' && one !== null) {
      for (const value of Object.values(one)) left.push(value)
    }
  }
  return found
}
