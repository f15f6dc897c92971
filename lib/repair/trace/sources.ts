/**
 * Texts of scripts as recorders kept them, and the lines in which ranges of them lie.
 *
 * The first line of such a file is empty, or JSON with the lengths of the script's lines and its
 * source map; the text is what follows. Texts may end with a source map as a data URL.
 *
 * @module
 */
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

import { coveredIntervals, linesOf, lineStarts, type Lines } from './lines.js'
import { readRecorded } from './read-records.js'
import { mappedLines, parseMap, type MappedText } from './source-map.js'

const MAX_SOURCES = 5_000
/** Of all texts together. */
const MAX_BYTES = 64 * 1024 * 1024
const MAX_PATH = 1_000
/** Steps of all conversions together: ranges, characters, segments. */
const MAX_STEPS = 2_000_000_000
const SOURCE = /^[0-9a-f]{64}$/
const INLINE = /^\/\/[#@] sourceMappingURL=data:application\/json;(?:charset=[^;,]{1,20};)?base64,/

/** A path inside of the project, as recorders write it. */
export function isPath(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > MAX_PATH || value.startsWith('/')) return false
  return value !== '' && posix.normalize(value) === value && !/^\.\.(?:\/|$)/.test(value)
}

/** A text as lines, or as the lines of the files that it was made of. */
type Source =
  | { readonly kind: 'plain'; readonly text: string; readonly starts: readonly number[] }
  | { readonly kind: 'mapped'; readonly map: MappedText }

/** The texts of a trace. */
export class Sources {
  readonly #folder: string
  readonly #maxBytes: number
  readonly #sources = new Map<string, Source | null>()
  #bytes = MAX_BYTES
  readonly #work = { steps: MAX_STEPS }

  constructor(folder: string, maxBytes: number) {
    this.#folder = folder
    this.#maxBytes = maxBytes
  }

  /** The lines of a script that ran; none when its text was not kept, or too much was asked. */
  async lines(path: string, name: string, ranges: readonly number[]): Promise<readonly Lines[]> {
    const key = `${name} ${path}`
    let source = this.#sources.get(key)
    if (source === undefined) {
      if (this.#sources.size >= MAX_SOURCES) return []
      source = await this.#read(path, name)
      this.#sources.set(key, source)
    }
    if (source === null || this.#work.steps <= 0) return []
    const intervals = coveredIntervals(ranges, this.#work)
    if (source.kind === 'mapped') return mappedLines(source.map, intervals, this.#work)
    return [{ path, lines: linesOf(source.text, source.starts, intervals, this.#work) }]
  }

  async #read(path: string, name: string): Promise<Source | null> {
    if (!SOURCE.test(name) || this.#bytes <= 0) return null
    // The map comes with the text, and may be longer than that.
    const content = await readRecorded(join(this.#folder, name), 4 * this.#maxBytes)
    if (content === null) return null
    this.#bytes -= content.length
    const whole = content.toString('utf8')
    const end = whole.indexOf('\n')
    if (end < 0) return null
    const text = whole.slice(end + 1)
    const map = parseMap(end > 0 ? whole.slice(0, end) : inlineMap(text))
    if (end > 0 && map?.lengths === null) return null
    const starts = map?.lengths ?? lineStarts(text)
    if (map === null) return { kind: 'plain', text, starts }
    const toPath = (file: string): string | null => mappedPath(path, map.root, file)
    const paths = map.sources.map(toPath)
    return { kind: 'mapped', map: { starts, segments: map.segments, paths } }
  }
}

/** The source map in a comment at the end of a text; null when it has none. */
function inlineMap(text: string): string | null {
  const from = text.lastIndexOf('\n//') + 1
  const line = text.slice(from, from + 150)
  const head = INLINE.exec(line)?.[0]
  if (head === undefined) return null
  const [encoded = ''] = text.slice(from + head.length).split('\n', 1)
  return Buffer.from(encoded, 'base64').toString('utf8')
}

/** The path of a file that a source map names; null for one outside of the project. */
function mappedPath(script: string, root: string, file: string): string | null {
  let path = file
  if (file.startsWith('file:')) {
    try {
      path = fileURLToPath(file)
    } catch {
      return null
    }
  }
  // An absolute path cannot be told to be of the project, but by ending with the script's own.
  if (path.startsWith('/')) return path.endsWith(`/${script}`) ? script : null
  const found = posix.normalize(posix.join(posix.dirname(script), root, path))
  return isPath(found) && !`/${found}`.includes('/node_modules/') ? found : null
}
