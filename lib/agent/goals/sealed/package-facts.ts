import { posix } from 'node:path'

import { withoutExtension } from './file-kinds.js'
import { groupBy } from './group-by.js'

/** What the package.json of a workspace tells about its code. */
export interface PackageFacts {
  readonly name: string | null
  /** Files among those given that it names as the code of the package. */
  readonly entries: ReadonlySet<string>
  /** The same by the folder that is imported; empty for the workspace. */
  readonly main: ReadonlyMap<string, readonly string[]>
  /** The settings of tools in it, as text. */
  readonly tools: string
  /** Paths that are the whole setting of a tool, as in `"prettier": "./format.json"`. */
  readonly paths: readonly string[]
}

/** Keys that have nothing to do with tools of checks. */
const OF_THE_PACKAGE = new Set(
  (
    'name version description keywords homepage bugs license licenses author contributors ' +
    'maintainers funding files main module browser exports imports bin man directories ' +
    'repository scripts config dependencies devDependencies peerDependencies ' +
    'peerDependenciesMeta optionalDependencies bundledDependencies bundleDependencies ' +
    'overrides resolutions engines os cpu private publishConfig workspaces type types typings ' +
    'typesVersions sideEffects unpkg jsdelivr packageManager react-native style sass es2015 ' +
    'jsnext:main source devEngines'
  ).split(' '),
)
const CODE_KEYS = ['main', 'module', 'browser', 'exports', 'bin', 'source', 'types', 'typings']
const BUILT = /^(?:dist|build|out|lib|esm|cjs|es)\//
const MAX_STRINGS = 2_000

const NOTHING: PackageFacts = {
  name: null, entries: new Set(), main: new Map(), tools: '', paths: [],
}

/** Reads the text of package.json; `files` are the files that it may name. */
export function readPackage(text: string | null, files: readonly string[]): PackageFacts {
  let parsed: unknown
  try {
    parsed = JSON.parse(text?.replace(/^\uFEFF/, '') ?? 'null')
  } catch {
    return NOTHING
  }
  if (typeof parsed !== 'object' || parsed === null) return NOTHING
  const given = parsed as Readonly<Record<string, unknown>>
  const entries = entriesOf(given, files)
  const name = given['name']
  const tools = Object.entries(given).filter(([key]) => !OF_THE_PACKAGE.has(key))
  return {
    name: typeof name === 'string' && name !== '' ? name : null,
    entries,
    main: new Map([['', [...entries]]]),
    paths: tools.flatMap(([, value]) => (typeof value === 'string' ? [value] : [])),
    tools: settingsOf(Object.fromEntries(tools)),
  }
}

function settingsOf(tools: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(tools)
  } catch {
    // Nested more deeply than the stack allows.
    return ''
  }
}

function entriesOf(
  given: Readonly<Record<string, unknown>>,
  files: readonly string[],
): ReadonlySet<string> {
  const byStem = groupBy(files, withoutExtension)
  const known = new Set(files)
  const found = new Set<string>()
  for (const named of strings(CODE_KEYS.map((key) => given[key]))) {
    const path = posix.normalize(named)
    const bare = withoutExtension(path).replace(/\.d$/, '')
    // What is built is in the workspace as its source.
    const built = BUILT.test(bare) ? ['src/', 'lib/'] : []
    const sources = built.map((folder) => bare.replace(BUILT, folder))
    if (known.has(path)) found.add(path)
    for (const stem of [path, bare, ...sources]) {
      for (const file of [...(byStem.get(stem) ?? []), ...(byStem.get(`${stem}/index`) ?? [])]) {
        found.add(file)
      }
    }
  }
  for (const file of byStem.get('index') ?? []) found.add(file)
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
