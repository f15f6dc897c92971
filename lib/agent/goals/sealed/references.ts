/**
 * What the text of a program refers to: files and folders of the workspace, by import, by path and
 * by name. One pass over the text, without knowing the language: a path is a path in `import`,
 * `open()`, `join()`, a shell command or a comment. What is found is rather too much than too
 * little, since a reference from code is what keeps a file out of a check.
 *
 * @module
 */
import { posix } from 'node:path'

import { trimEndOf } from '../../../internal/text.js'
import { inSlices, LongWork } from '../../../internal/time.js'
import { withoutExtension, type Language } from './file-kinds.js'

/** What one text refers to. */
export interface References {
  /** Files that it names by a path or imports. */
  readonly files: ReadonlySet<string>
  /** Names of files, with their extensions. */
  readonly names: ReadonlySet<string>
  /** Names and paths of folders. */
  readonly folders: ReadonlySet<string>
  /** Strings that are the name of a file without its extension. */
  readonly stems: ReadonlySet<string>
  /** Strings that are an extension, as in `name + '.json'`. */
  readonly extensions: ReadonlySet<string>
  /** Names without extensions of what quoted paths mean that lead to no file. */
  readonly unresolved: ReadonlySet<string>
  /** True when it imports the package that the workspace holds, by that package's name. */
  readonly itself: boolean
}

/** Runs of characters that paths are made of: all but these, and white space. */
const TOKENS = /[^\s"'`()<>[\]{},;:=|&\\!?*#^]+/g
const MAX_TOKEN = 1_024
/** Which characters of ASCII end a token, by their codes. Matches cost several times as much. */
const ENDS_TOKEN = Array.from({ length: 128 }, (_, code) => isBeyond(String.fromCharCode(code)))
/** Around a lone string: is it given to something that opens files? */
const OPENS = /join|resolve|path|read|open|url|dir|glob|fs\.|file|load|require|import/i
const NEAR = 80
/** Before the name of an event. */
const OF_EVENTS = /\b(?:on|once|off|emit|\w*Listener)\(["'`]$/
/** Files that one name can mean; further ones are not looked for. */
const MAX_ALIKE = 200

/** What references lead to. */
export interface Places {
  readonly paths: Iterable<string>
  /** Name of the package that the workspace holds. */
  readonly name?: string | null
  /** Entries of packages by their folders; empty for the workspace. */
  readonly main?: ReadonlyMap<string, readonly string[]>
  /** Folders of the packages in the workspace, by name. */
  readonly packages?: ReadonlyMap<string, string>
  /** Files by other names of imports, such as `#money`. */
  readonly aliases?: ReadonlyMap<string, readonly string[]>
  /** Folders in which Python finds modules by their names, beside the usual ones. */
  readonly pythonPath?: readonly string[]
  /** Names of folders that were listed. */
  readonly listed?: ReadonlySet<string>
}

export const PYTHON_MODULE: RegExp = /\.(?:pyi?|pyx)$/

/** Finds references to a fixed set of files. */
export class ReferenceFinder {
  readonly #paths: ReadonlySet<string>
  /** Files by path without extension, and folders by their path for what is in them as `index`. */
  readonly #stems: Map<string, string[]> = new Map()
  readonly #names: Set<string> = new Set()
  readonly #nameStems: Set<string> = new Set()
  readonly #folderNames: Set<string> = new Set()
  readonly #folderPaths: Set<string> = new Set()
  readonly #byTail: Map<string, string[]> = new Map()
  readonly #extensions: Set<string> = new Set()
  /** By all that follows the first part of a name, such as `.cases.json`. */
  readonly #byEnding: Map<string, string[]> = new Map()
  readonly #places: Places
  readonly #work = new LongWork()
  #steps = 0

  private constructor(places: Places) {
    this.#paths = new Set(places.paths)
    this.#places = places
  }

  /** Indexes what references may lead to. */
  static async to(places: Places): Promise<ReferenceFinder> {
    const finder = new ReferenceFinder(places)
    await inSlices(finder.#indexAll())
    return finder
  }

  *#indexAll(): Generator<void, void> {
    for (const path of this.#paths) {
      yield
      this.#index(path)
    }
    for (const [folder, entries] of this.#places.main ?? []) {
      for (const entry of entries) this.#add(this.#stems, folder, entry)
    }
  }

  #index(path: string): void {
    const bare = withoutExtension(path)
    const parts = path.split('/')
    this.#add(this.#stems, bare, path)
    const stem = posix.basename(bare)
    if (stem === 'index' || stem === '__init__') {
      this.#add(this.#stems, parts.slice(0, -1).join('/'), path)
    }
    this.#names.add(nameKey(path))
    this.#nameStems.add(stem)
    this.#extensions.add(posix.extname(path))
    const [, ending] = /^[^.]+(\.[\w-]+\.[\w.-]+)$/.exec(parts.at(-1)!) ?? []
    if (ending !== undefined) this.#add(this.#byEnding, ending, path)
    if (parts.length > 1) this.#add(this.#byTail, `${parts.at(-2)!}/${stem}`, path)
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      this.#folderPaths.add(path.slice(0, at))
    }
    for (const folder of parts.slice(0, -1)) this.#folderNames.add(folder)
  }

  #add(map: Map<string, string[]>, key: string, path: string): void {
    const known = map.get(key)
    if (known === undefined) map.set(key, [path])
    else if (known.length < MAX_ALIKE && !known.includes(path)) known.push(path)
  }

  /** The references of the text of the file `from`. */
  async find(from: string, text: string, language: Language): Promise<References> {
    const found = new Found()
    const folder = posix.dirname(from) === '.' ? '' : posix.dirname(from)
    const above = foldersAbove(folder)
    const seen = { plain: new Set<string>(), quoted: new Set<string>() }
    let end = 0
    for (;;) {
      const start = nextToken(text, end)
      if (start === text.length) break
      end = tokenEnd(text, start)
      this.#steps += 1
      if (this.#steps % 500 === 0 && this.#work.isDue) await this.#work.next()
      if (end - start > MAX_TOKEN) continue
      const raw = text.slice(start, end)
      const quoted = isQuote(text.charCodeAt(start - 1)) && isQuote(text.charCodeAt(end))
      if (quoted) this.#literal(raw, text, start, end, found)
      const known = quoted ? seen.quoted : seen.plain
      if (known.has(raw)) continue
      known.add(raw)
      this.#token(raw, folder, quoted, found)
      if (quoted && language === 'python') this.#pythonModule(withoutDots(raw), above, found)
    }
    if (language === 'python') this.#pythonImports(text, above, found)
    found.files.delete(from)
    return found
  }

  /** The files that an import in the file `from` means. */
  imported(from: string, specifier: string): ReadonlySet<string> {
    const found = new Found()
    const folder = posix.dirname(from) === '.' ? '' : posix.dirname(from)
    this.#token(specifier, folder, true, found)
    found.files.delete(from)
    return found.files
  }

  #token(raw: string, folder: string, quoted: boolean, found: Found): void {
    const token = withoutDots(raw)
    const last = token.slice(token.lastIndexOf('/') + 1)
    const isName = this.#names.has(last)
    if (isName) found.names.add(last)
    if (this.#extensions.has(token)) found.extensions.add(token)
    if (quoted) {
      const name = this.#places.name ?? null
      if (token === name || token.startsWith(`${name}/`)) found.itself = true
      this.#ofPackages(token, found)
      if (this.#nameStems.has(token)) found.stems.add(token)
      for (const file of this.#byEnding.get(token) ?? []) found.files.add(file)
    }
    const isPath = token.includes('/') || (quoted && (token === '.' || token === '..'))
    const known = found.files.size
    if (isPath) this.#path(token, folder, found)
    else if (isName) {
      const beside = posix.join(folder, token)
      if (this.#paths.has(beside)) found.files.add(beside)
      else if (this.#paths.has(token)) found.files.add(token)
    }
    const leadsNowhere = isPath && quoted && found.files.size === known
    if (leadsNowhere) found.unresolved.add(withoutExtension(last))
  }

  /** A name that packages of the workspace give to files. */
  #ofPackages(token: string, found: Found): void {
    const { aliases, packages } = this.#places
    if ((aliases?.size ?? 0) + (packages?.size ?? 0) === 0) return
    const named = aliases?.get(token)
    if (named !== undefined) {
      for (const file of named) found.files.add(file)
      return
    }
    const name = /^(?:@[^/]+\/)?[^/]+/.exec(token)?.[0] ?? ''
    const at = packages?.get(name)
    if (at === undefined || at === '') return
    this.#resolve(posix.join(at, token.slice(name.length)), found)
  }

  /** A token with a slash: relative to its file, to the workspace, or behind an alias. */
  #path(token: string, from: string, found: Found): void {
    const plain = token.replace(/^(?:[@~#$%]?\/)+/, '')
    const here = this.#resolve(posix.join(from, plain || '.'), found)
    // `open('./a.json')` is relative to the workspace, `import './a.js'` never is.
    if (!here || !token.startsWith('.')) this.#resolve(posix.normalize(plain || '.'), found)
    const parts = plain.split('/').filter((part) => part !== '' && part !== '.' && part !== '..')
    // `cases/$name` names a folder; `unit/convert` names a file in one.
    const isOpen = plain.endsWith('/') || /[$%]/.test(parts.at(-1) ?? '')
    const folder = parts.at(isOpen && !plain.endsWith('/') ? -2 : -1) ?? ''
    if (this.#folderNames.has(folder)) found.folders.add(folder)
    if (parts.length < 2 || token.startsWith('.')) return
    const tail = `${parts.at(-2)!}/${withoutExtension(parts.at(-1)!)}`
    for (const path of this.#byTail.get(tail) ?? []) found.files.add(path)
  }

  /** Notes what is at a path, or would be imported by it; false for nothing. */
  #resolve(given: string, found: Found): boolean {
    const path = given === '.' || given === './' ? '' : given.replace(/\/$/, '')
    const isFile = this.#paths.has(path)
    const isFolder = this.#folderPaths.has(path)
    if (isFile) found.files.add(path)
    if (isFolder) found.folders.add(path)
    // `./a.js` may be the file a.ts.
    const bare = isFile ? path : withoutExtension(path)
    const imported = [...(this.#stems.get(path) ?? []), ...(this.#stems.get(bare) ?? [])]
    for (const file of imported) found.files.add(file)
    return isFile || isFolder || imported.length > 0
  }

  /** A string of its own: the name of a folder when it seems to be used as a path. */
  #literal(raw: string, text: string, start: number, end: number, found: Found): void {
    if (!this.#folderNames.has(raw) || found.folders.has(raw)) return
    const before = text.slice(Math.max(0, start - NEAR), start)
    if (OF_EVENTS.test(before)) return
    const near = before.slice(before.lastIndexOf('\n') + 1) + text.slice(end, end + NEAR)
    if (this.#places.listed?.has(raw) === true || OPENS.test(near)) found.folders.add(raw)
  }

  #pythonImports(text: string, above: readonly string[], found: Found): void {
    for (const match of text.matchAll(PYTHON_IMPORT)) {
      const [, from, names, modules] = match
      if (modules !== undefined) {
        for (const one of modules.split(',')) {
          this.#pythonModule(one.trim().split(/\s/, 1)[0]!, above, found)
        }
      } else if (from !== undefined) {
        const end = (match.index ?? 0) + match[0].length
        const more = names?.trimStart().startsWith('(') === true ? parenthesised(text, end) : ''
        this.#pythonModule(from, above, found)
        for (const name of `${names ?? ''}${more}`.split(/[\s,()]+/)) {
          if (name === '') continue
          this.#pythonModule(`${from}${from.endsWith('.') ? '' : '.'}${name}`, above, found)
        }
      }
    }
  }

  /** `a.b` as a module of the workspace: from its root, `src`, or a folder above the text. */
  #pythonModule(name: string, above: readonly string[], found: Found): void {
    if (name.length > 200) return
    const dots = name.length - name.replace(/^\.+/, '').length
    const end = name.indexOf('.', dots)
    const first = name.slice(dots, end === -1 ? undefined : end)
    // Most strings are no modules.
    if (!this.#nameStems.has(first) && !this.#folderNames.has(first)) return
    if (!/^\.*[\p{L}_][\p{L}\p{N}_.]*$/u.test(name)) return
    const path = name.slice(dots).replaceAll('.', '/')
    const { pythonPath = [] } = this.#places
    const bases = dots > 0 ? above.slice(dots - 1, dots) : [...above, 'src', 'lib', ...pythonPath]
    for (const base of bases) {
      for (let part = path; ; part = part.slice(0, part.lastIndexOf('/'))) {
        const at = base === '' ? part : `${base}/${part}`
        for (const file of this.#stems.get(at) ?? []) {
          if (PYTHON_MODULE.test(file)) found.files.add(file)
        }
        if (!part.includes('/')) break
      }
    }
  }
}

const PYTHON_IMPORT =
  /^[ \t]*(?:from[ \t]+([\p{L}\p{N}_.]+)[ \t]+import\b(.*)|import[ \t]+([^ \t\r\n].*))$/gmu
const MAX_LIST = 4_096

function parenthesised(text: string, from: number): string {
  const rest = text.slice(from, from + MAX_LIST)
  return rest.slice(0, Math.max(0, rest.indexOf(')')))
}

/** Where the first token from `at` on begins; the end of the text when there is none. */
function nextToken(text: string, at: number): number {
  let start = at
  while (start < text.length && endsToken(text, start)) start += 1
  return start
}

function tokenEnd(text: string, start: number): number {
  let end = start
  while (end < text.length && !endsToken(text, end)) end += 1
  return end
}

function endsToken(text: string, at: number): boolean {
  return ENDS_TOKEN[text.charCodeAt(at)] ?? /\s/.test(text[at]!)
}

function isBeyond(character: string): boolean {
  return character.replaceAll(TOKENS, '') !== ''
}

/** Of `"`, `'` and a backtick. */
function isQuote(code: number): boolean {
  return code === 0x22 || code === 0x27 || code === 0x60
}

/** A token without the dots behind it, unless it is made of nothing else. */
function withoutDots(token: string): string {
  const before = trimEndOf(token, '.')
  return before === '' || before.endsWith('/') ? token : before
}

/** The folder and those above it, the nearest first, the workspace (empty) last. */
function foldersAbove(folder: string): readonly string[] {
  const all: string[] = []
  for (let at = folder; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) all.push(at)
  return [...all, '']
}

/** The name of a file as a text shows it: of a name with spaces, the part after the last. */
export function nameKey(path: string): string {
  const name = posix.basename(path)
  return name.match(TOKENS)?.at(-1) ?? name
}

class Found implements References {
  readonly files: Set<string> = new Set()
  readonly names: Set<string> = new Set()
  readonly folders: Set<string> = new Set()
  readonly stems: Set<string> = new Set()
  readonly extensions: Set<string> = new Set()
  readonly unresolved: Set<string> = new Set()
  itself = false
}
