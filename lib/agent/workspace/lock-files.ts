/**
 * Lock files of package managers, and the packages that they name. A file is the work of others:
 * what is not understood is passed over, and each reader is linear in its text.
 *
 * @module
 */
import { isJsonObject, type JsonObject } from '../../internal/json.js'
import { linesOf } from '../../internal/line-diff.js'

/** Versions by name, and where each is from: an address, a checksum, or nothing. */
export type Packages = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>

type Reader = (text: string) => Generator<void, Packages>

/** True for the path of a lock file, in any folder. */
export function isLockFile(path: string): boolean {
  return readerOf(path) !== null
}

/** The packages of a lock file; null when they cannot be told from its text. */
export function* packagesOf(path: string, text: string): Generator<void, Packages | null> {
  const reader = readerOf(path)
  if (reader === null) return null
  try {
    return yield* reader(text)
  } catch {
    return null // no JSON
  }
}

function readerOf(path: string): Reader | null {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (name.startsWith('requirements') && name.endsWith('.txt')) return requirements
  return READERS.get(name) ?? null
}

/** Lines that are read between two yields. */
const SLICE = 5_000

/** The lines of a text, without the blanks at their ends. */
function* eachLine(text: string, take: (line: string) => void): Generator<void, void> {
  const lines = yield* linesOf(text)
  for (const [index, line] of lines.entries()) {
    if (index % SLICE === SLICE - 1) yield
    take(line.trimEnd())
  }
}

/** Collects packages one after the other, each from several lines. */
class Collected {
  readonly packages = new Map<string, Map<string, Set<string>>>()
  #name = ''
  #version = ''
  #source: string[] = []

  add(name: string, version: string, source = ''): void {
    if (name === '') return
    const versions = this.packages.get(name) ?? new Map<string, Set<string>>()
    this.packages.set(name, versions)
    versions.set(version, (versions.get(version) ?? new Set()).add(source))
  }

  /** The lines that follow are about this package; about none when `name` is empty. */
  begin(name: string, version = ''): void {
    this.add(this.#name, this.#version, this.#source.join(' '))
    this.#name = name
    this.#version = version
    this.#source = []
  }

  set name(name: string) {
    this.#name = name
  }

  set version(version: string) {
    this.#version = version
  }

  from(source: string): void {
    this.#source.push(source)
  }

  end(): Packages {
    this.begin('')
    return this.packages
  }
}

/** package-lock.json of all versions. */
function* npm(text: string): Generator<void, Packages> {
  const found = new Collected()
  const { packages, dependencies } = parseObject(text)
  const add = (name: string, entry: unknown): void => {
    const { version, resolved, integrity } = objectOf(entry)
    found.add(name, textOf(version), `${textOf(resolved)} ${textOf(integrity)}`)
  }
  if (isJsonObject(packages)) {
    for (const [path, entry] of Object.entries(packages)) {
      const at = path.lastIndexOf(NODE_MODULES)
      // Others are the project and its workspaces.
      if (at !== -1) add(path.slice(at + NODE_MODULES.length), entry)
    }
    return found.packages
  }
  const open = [objectOf(dependencies)]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [name, entry] of Object.entries(next)) {
      add(name, entry)
      open.push(objectOf(objectOf(entry)['dependencies']))
    }
    yield
  }
  return found.packages
}

const NODE_MODULES = 'node_modules/'

function* yarn(text: string): Generator<void, Packages> {
  const found = new Collected()
  yield* eachLine(text, (line) => {
    if (line === '' || line.startsWith('#')) return
    if (!line.startsWith(' ')) {
      const [name] = nameAndVersion(line.startsWith('"') ? line.slice(1) : line)
      found.begin(line.includes('@workspace:') || line.startsWith('__') ? '' : name)
    } else if (/^ {2}version[: ]/.test(line)) found.version = unquoted(line.slice(10))
    else if (/^ {2}(resolved|integrity|checksum|resolution)[: ]/.test(line)) found.from(line)
  })
  return found.end()
}

function* pnpm(text: string): Generator<void, Packages> {
  const found = new Collected()
  let isPackages = false
  yield* eachLine(text, (line) => {
    if (line !== '' && !line.startsWith(' ')) isPackages = line === 'packages:'
    if (!isPackages) return
    if (/^ {2}[^ ]/.test(line) && line.endsWith(':')) {
      const key = unquoted(line.slice(2, -1))
      const path = key.startsWith('/') ? key.slice(1) : key
      // In brackets are the peers with which it is used.
      found.begin(...nameAndVersion(path.split('(', 1)[0]!))
    } else if (/^ {4}resolution:/.test(line)) found.from(line)
  })
  return found.end()
}

function* bun(text: string): Generator<void, Packages> {
  const found = new Collected()
  let isPackages = false
  yield* eachLine(text, (line) => {
    if (/^ {2}"/.test(line)) isPackages = line.startsWith('  "packages"')
    const start = line.indexOf('["')
    if (!isPackages || start === -1 || !/^ {4}"/.test(line)) return
    const end = line.indexOf('"', start + 2)
    const hash = line.lastIndexOf('"sha')
    const [name, version] = nameAndVersion(line.slice(start + 2, end === -1 ? undefined : end))
    found.add(name, version, hash === -1 ? '' : line.slice(hash))
  })
  return found.end()
}

/** Cargo, Poetry and uv. */
function* tables(text: string): Generator<void, Packages> {
  const found = new Collected()
  let isPackage = false
  yield* eachLine(text, (line) => {
    if (line.startsWith('[')) {
      isPackage = line === '[[package]]'
      if (isPackage) found.begin('')
    } else if (!isPackage) return
    else if (line.startsWith('name = ')) found.name = unquoted(line.slice(7))
    else if (line.startsWith('version = ')) found.version = unquoted(line.slice(10))
    else if (/^(checksum|source) = /.test(line)) found.from(line)
  })
  return found.end()
}

function* goSum(text: string): Generator<void, Packages> {
  const found = new Collected()
  yield* eachLine(text, (line) => {
    const [name = '', version = '', hash = ''] = line.split(' ', 3)
    // That of a module which was only looked at.
    if (!version.endsWith('/go.mod')) found.add(name, version, hash)
  })
  return found.end()
}

function* requirements(text: string): Generator<void, Packages> {
  const found = new Collected()
  yield* eachLine(text, (given) => {
    const line = given.trimStart()
    if (line === '' || line.startsWith('#')) return
    if (line.startsWith('--hash')) return found.from(line)
    const name = /^[A-Za-z0-9][\w.-]*(?=$|[\s[<>=!~;@\\])/.exec(line)?.[0]
    // Such as another file, or a folder.
    if (name === undefined) return found.begin(line)
    const [wanted] = line.slice(name.length).split(/;|\\$| #/, 1)
    const extras = wanted!.trimStart().startsWith('[') ? wanted!.indexOf(']') + 1 : 0
    const version = wanted!.slice(extras).trim()
    found.begin(name, version.startsWith('==') ? version.slice(2).trim() : version)
  })
  return found.end()
}

function* gems(text: string): Generator<void, Packages> {
  const found = new Collected()
  yield* eachLine(text, (line) => {
    const open = line.indexOf(' (', 4)
    if (/^ {4}[^ ]/.test(line) && open !== -1 && line.endsWith(')'))
      found.add(line.slice(4, open), line.slice(open + 2, -1))
  })
  return found.end()
}

function* composer(text: string): Generator<void, Packages> {
  const found = new Collected()
  const lock = parseObject(text)
  for (const key of ['packages', 'packages-dev']) {
    const list = lock[key]
    for (const entry of Array.isArray(list) ? list : []) {
      const { name, version, dist, source } = objectOf(entry)
      const { url, shasum } = objectOf(dist)
      const from = [url, shasum, objectOf(source)['reference']].map(textOf)
      found.add(textOf(name), textOf(version), from.join(' '))
    }
    yield
  }
  return found.packages
}

function* pipfile(text: string): Generator<void, Packages> {
  const found = new Collected()
  for (const [category, list] of Object.entries(parseObject(text))) {
    if (category === '_meta') continue
    for (const [name, entry] of Object.entries(objectOf(list))) {
      const { version, hashes } = objectOf(entry)
      const wanted = textOf(version)
      const from = Array.isArray(hashes) ? hashes.map(textOf).join(' ') : ''
      found.add(name, wanted.startsWith('==') ? wanted.slice(2) : wanted, from)
    }
    yield
  }
  return found.packages
}

const READERS: ReadonlyMap<string, Reader> = new Map([
  ['package-lock.json', npm],
  ['npm-shrinkwrap.json', npm],
  ['yarn.lock', yarn],
  ['pnpm-lock.yaml', pnpm],
  ['bun.lock', bun],
  ['Cargo.lock', tables],
  ['poetry.lock', tables],
  ['uv.lock', tables],
  ['go.sum', goSum],
  ['Gemfile.lock', gems],
  ['composer.lock', composer],
  ['Pipfile.lock', pipfile],
])

/** `name@version`, of which the name may begin with `@`. */
function nameAndVersion(text: string): [name: string, version: string] {
  const at = text.indexOf('@', 1)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function unquoted(text: string): string {
  const value = text.trim()
  const quote = value[0]
  const isQuoted = (quote === '"' || quote === "'") && value.length > 1 && value.endsWith(quote)
  return isQuoted ? value.slice(1, -1) : value
}

/** @throws SyntaxError */
function parseObject(text: string): JsonObject {
  return objectOf(JSON.parse(text))
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
