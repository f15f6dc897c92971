import { read } from './calls.js'
import type { CallResult, PlannedCall } from './conversation.js'
import { importsOf, isReadablePath, isSourcePath, isTestPath } from './files.js'
import { languageOf, parseSource, type SourceFile } from './source.js'

/** Files after which a run reads no more. */
const MAX_FILES = 160
/** Longer files are not repaired. */
export const MAX_FILE_LENGTH = 400_000
/** Files of small projects are read all. */
const FEW_FILES = 20

/** The files of the project, as far as they have been listed and read. */
export class Project {
  readonly #isCheckFile: (path: string) => boolean
  paths: readonly string[] = []
  readonly #texts = new Map<string, string>()
  readonly #parsed = new Map<string, SourceFile>()

  /** `isCheckFile` tells what belongs to the check as far as is known now; more may be found. */
  constructor(isCheckFile: (path: string) => boolean) {
    this.#isCheckFile = isCheckFile
  }

  /** May be changed. */
  readonly isSource = (path: string): boolean => isSourcePath(path) && !this.#isCheckFile(path)

  /** Tells what is wanted. */
  readonly isTest = (path: string): boolean => isTestPath(path) || this.#isCheckFile(path)

  /** Takes the result of `list_files`. */
  list({ output }: CallResult): void {
    this.paths = output
      .split('\n')
      .map((path) => path.trim().replace(/^\.\//, ''))
      .filter((path) => path !== '' && !path.endsWith('/') && isReadablePath(path))
  }

  text(path: string): string {
    return this.#texts.get(path) ?? ''
  }

  parsed(path: string): SourceFile | undefined {
    return this.#parsed.get(path)
  }

  /** Sources that have been read. */
  sourcesRead(): readonly string[] {
    return [...this.#texts.keys()].filter(this.isSource)
  }

  remember(path: string, text: string): void {
    this.#texts.set(path, text)
    const file = languageOf(path) === null ? null : parseSource(path, text)
    if (file !== null) this.#parsed.set(path, file)
  }

  /**
   * The files to read next for what is reached from `first`, at most `count`: tests and their
   * imports, other tests, sources that failing tests were seen to run, and all of a small project.
   */
  missing(
    first: readonly string[],
    others: readonly string[],
    seen: readonly string[],
    count: number,
  ): readonly string[] {
    if (this.#texts.size > MAX_FILES) return []
    const sources = this.paths.filter(this.isSource)
    const reached = first.flatMap((path) => this.withImports(path))
    const isFar = seen.length === 0 && !reached.some(this.isSource)
    const all = isFar || sources.length <= FEW_FILES ? sources : []
    const wanted = new Set([...first, ...others, ...seen, ...reached, ...all])
    return [...wanted].filter((path) => !this.#texts.has(path)).slice(0, count)
  }

  /** A file and its direct and indirect imports, as far as they have been read. */
  withImports(path: string): string[] {
    const all = new Set(this.paths)
    const found = new Set([path])
    for (const next of found) {
      const file = this.#parsed.get(next)
      if (file !== undefined) for (const target of importsOf(file, all)) found.add(target)
    }
    return [...found]
  }

  files(wanted: (path: string) => boolean): SourceFile[] {
    return [...this.#parsed]
      .filter(([path, { text }]) => wanted(path) && text !== '')
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, file]) => file)
  }
}

/** A file from a line on. */
export interface Part {
  readonly path: string
  readonly offset: number
}

/** Calls that read these files. */
export function reads(parts: readonly Part[]): readonly PlannedCall[] {
  return parts.map(({ path, offset }) => read(path, offset))
}

/** What `read_file` gave, and the line at which to go on; no text for what is no such file. */
export function partOf({ output, exitCode }: CallResult): {
  readonly text: string | null
  readonly next: number | null
} {
  if (exitCode !== 0) return { text: null, next: null }
  const note =
    /\[\u2026 lines (\d+) to \d+ of \d+ are left out; read on with offset \d+ .\]$/.exec(output)
  if (note !== null) return { text: output.slice(0, note.index), next: Number(note[1]) }
  return { text: output.endsWith('is left out: it is too long …]') ? null : output, next: null }
}
