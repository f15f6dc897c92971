/**
 * Absolute paths in the text of files that lead back into the original of a copied folder. In the
 * files that tools write to find their own parts (scripts and settings of a virtual environment,
 * `.pth` files and editable installs, `node_modules/.bin`, the state of package managers) they are
 * replaced by the paths of the copy. In all other files they are only found: text of which nothing
 * is known, and a folder such as `/app` is also a word of URLs.
 *
 * @module
 */
import { basename, dirname } from 'node:path'
import { realpathSync } from 'node:fs'
import { copyOf, type CopiedFolder } from './copied-links.js'
import { toSystem, type RawPath } from './raw-paths.js'

/** Larger ones of such files are not looked through. */
export const MAX_STATE_BYTES: number = 32 * 1024 * 1024

/** Longer first lines of scripts are cut by some systems. */
const MAX_SHEBANG = 127

/** Files by which tools find their own parts: virtual environments, pip, pnpm, yarn, npm. */
const STATE: ReadonlySet<string> = new Set([
  'pyvenv.cfg', 'direct_url.json', '.modules.yaml', '.yarn-state.yml', '.package-lock.json',
])
const STATE_BEGINNINGS: readonly string[] = ['__editable__', '.pnpm-workspace-state']
const STATE_ENDINGS: readonly string[] = ['.pth', '.egg-link']

/** Folders of scripts and settings with paths, in folders of dependencies. */
const STATE_FOLDERS: ReadonlySet<string> = new Set(['bin', '.bin', 'kernels', 'conda-meta'])

/** Is it a file by which a tool finds its own parts? `path` is that in the folder. */
export function isState(path: RawPath, inDependencies: boolean): boolean {
  const name = basename(path)
  if (name === '.pdm-python' || name.startsWith('.pnp.')) return true
  if (!inDependencies) return false
  const folder = dirname(path)
  if (STATE.has(name) || STATE_BEGINNINGS.some((text) => name.startsWith(text))) return true
  if (STATE_ENDINGS.some((text) => name.endsWith(text))) return true
  if (STATE_FOLDERS.has(basename(folder))) return true
  return STATE_FOLDERS.has(basename(dirname(folder)))
}

/** Finds and replaces the paths of originals. */
export class CopiedPaths {
  readonly #copies: readonly CopiedFolder[]
  readonly #forms: readonly (readonly [from: Buffer, to: Buffer])[]
  readonly #real: Map<RawPath, RawPath | null> = new Map()
  #isCut = false

  constructor(copies: readonly CopiedFolder[]) {
    this.#copies = copies
    const forms = copies.flatMap(({ from, to }) => [
      [from, to], [inUrl(from), inUrl(to)], [inJson(from), inJson(to)],
    ])
    const distinct = new Map(forms as [string, string][])
    this.#forms = [...distinct].map(([from, to]) => [
      Buffer.from(from, 'latin1'), Buffer.from(to, 'latin1'),
    ])
  }

  /** Did the last content have more paths than are looked up? */
  get isCut(): boolean {
    return this.#isCut
  }

  /** Does it hold the path of an original? */
  isIn(content: Buffer): boolean {
    return this.#forms.some(([from]) => nextPath(content, from, 0) !== -1)
  }

  /**
   * The content with the paths of the copies; null when there is nothing to replace, and
   * `'binary'` for a content in which nothing can be replaced.
   */
  replaced(content: Buffer): Buffer | 'binary' | null {
    const forms = [...this.#forms, ...this.#otherSpellings(content)]
    let text = content
    for (const [from, to] of forms) text = replaceAll(text, from, to)
    if (text === content) return null
    return content.includes(0) ? 'binary' : shortShebang(text)
  }

  /** Paths that lead to an original through links, as a folder may have been called by a user. */
  #otherSpellings(content: Buffer): readonly (readonly [from: Buffer, to: Buffer])[] {
    this.#isCut = false
    if (content.includes(0)) return []
    const found = new Map<string, string>()
    for (const [path] of content.toString('latin1').matchAll(ABSOLUTE)) {
      this.#isCut ||= found.size >= MAX_SPELLINGS
      if (this.#isCut) break
      if (copyOf(path, this.#copies) !== null) continue
      // An interpreter is a link that leads out: its folder tells where it is.
      const folder = this.#realPathOf(dirname(path))
      const copy = copyOf(folder === null ? '/' : `${folder}/${basename(path)}`, this.#copies) ??
        copyOf(this.#realPathOf(path) ?? '/', this.#copies)
      if (copy !== null) found.set(path, copy)
    }
    const longestFirst = [...found].sort(([a], [b]) => b.length - a.length)
    return longestFirst.map(([from, to]) => [
      Buffer.from(from, 'latin1'), Buffer.from(to, 'latin1'),
    ])
  }

  #realPathOf(path: RawPath): RawPath | null {
    const known = this.#real.get(path)
    if (known !== undefined) return known
    this.#isCut ||= this.#real.size >= MAX_LOOKUPS
    if (this.#isCut) return null
    const real = realPathOf(path)
    // A copy, because a part of a string keeps all of it.
    this.#real.set(Buffer.from(path, 'latin1').toString('latin1'), real)
    return real
  }
}

/** An absolute path at the beginning of a line, after `=`, a quote, `#!` or `file://`. */
const ABSOLUTE = /(?<=^|[='"\s]|#!|file:\/\/)\/[^\s'"<>|:;,()\0]{1,1000}/gm
const MAX_SPELLINGS = 64
/** Paths that are looked up for all files of a copy: each costs some microseconds. */
const MAX_LOOKUPS = 20_000

/** The real path, as far as all of it exists. */
export function realPathOf(path: RawPath): RawPath | null {
  try {
    return realpathSync(toSystem(path), 'latin1')
  } catch {
    return null
  }
}

/** As in `file:` URLs. */
function inUrl(path: RawPath): string {
  const encoded = (char: string): string =>
    `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  return path.replaceAll(/[^A-Za-z0-9/._~!$&'()*+,;=:@-]/g, encoded)
}

/** As in JSON that is only ASCII. */
function inJson(path: RawPath): string {
  const escaped = (char: string): string =>
    `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  const text = JSON.stringify(Buffer.from(path, 'latin1').toString('utf8')).slice(1, -1)
  return text.replaceAll(/[^\u0000-\u007f]/g, escaped)
}

function replaceAll(content: Buffer, from: Buffer, to: Buffer): Buffer {
  const parts: Buffer[] = []
  let done = 0
  for (let at = nextPath(content, from, 0); at !== -1; at = nextPath(content, from, done)) {
    parts.push(content.subarray(done, at), to)
    done = at + from.length
  }
  return done === 0 ? content : Buffer.concat([...parts, content.subarray(done)])
}

/** Where the path begins that is this folder or lies in it; -1 if there is none. */
function nextPath(content: Buffer, folder: Buffer, start: number): number {
  for (let at = start; ; at += 1) {
    at = content.indexOf(folder, at)
    if (at === -1) return -1
    if (!goesOn(content, at + folder.length) && !isTail(content, at)) return at
  }
}

/** Does a name go on here, so that it is another one? A dot at its end is a full stop. */
function goesOn(content: Buffer, at: number): boolean {
  return isNameByte(content[at]) || (content[at] === DOT && isNameByte(content[at + 1]))
}

/** Does a longer path end here? The letter before may also be an option, as in `-L/path`. */
function isTail(content: Buffer, at: number): boolean {
  if (!isNameByte(content[at - 1]) && content[at - 1] !== DOT) return false
  let start = at - 1
  while (start > 0 && at - start < 256 && isNameByte(content[start - 1])) start -= 1
  return content[start] !== DASH
}

const DOT = 0x2e
const DASH = 0x2d

/** Letters, digits, `-`, `_`, and what is not ASCII. */
function isNameByte(byte: number | undefined): boolean {
  if (byte === undefined) return false
  if (byte >= 0x80 || byte === DASH || byte === 0x5f) return true
  const letter = byte | 0x20
  return (byte >= 0x30 && byte <= 0x39) || (letter >= 0x61 && letter <= 0x7a)
}

/**
 * A Python script whose first line became too long, or has a space in its path, as one that the
 * shell starts: installers of packages write it so.
 */
function shortShebang(content: Buffer): Buffer {
  const end = content.indexOf(0x0a)
  const line = content.subarray(0, Math.max(end, 0)).toString('latin1')
  const program = line.slice(2).trim()
  const isPython = line.startsWith('#!/') && basename(program).startsWith('python')
  if (!isPython || (line.length <= MAX_SHEBANG && !program.includes(' '))) return content
  const start = `#!/bin/sh\n'''exec' "${program}" "$0" "$@"\n' '''`
  return Buffer.concat([Buffer.from(start, 'latin1'), content.subarray(end)])
}
