/**
 * What is different in a copied repository: git commands in the copy must change neither the
 * original's repository nor its index, branches or working tree.
 *
 * 1. `.git` as a file leads to the repository of a linked working tree or of a submodule. One
 *    outside the folder cannot be used: the file leads nowhere then, so that git says that there is
 *    no repository instead of using the one of a folder above.
 * 2. Linked working trees outside the folder (`worktrees/*`) do not belong to the copy: git would
 *    delete them by their paths.
 * 3. A working tree outside (`core.worktree`) is dropped from the settings.
 * 4. Lock files are those of processes that work in the original.
 * 5. Links that lead out are left out, since git writes through them.
 * 6. Alternates are only read; relative ones become absolute where they lead out.
 *
 * @module
 */
import { basename, dirname, posix } from 'node:path'
import { copyOf, type CopiedFolder } from './copied-links.js'
import { realPathOf, type CopiedPaths } from './copied-paths.js'
import type { RawPath } from './raw-paths.js'

/** Leads to no repository. */
export const NO_REPOSITORY = 'gitdir: /nonexistent/not-part-of-this-copy\n'

/** Files of a repository in which there are paths. */
const WITH_PATHS = /^(config|config\.worktree|gitdir|commondir|alternates|hgrc)$/

/** What becomes of a file that belongs to version control; null: it is left out. */
export interface CopiedFile {
  readonly content: Buffer | null
  /** Did it lead out, so that it was changed or left out? */
  readonly ledOut: boolean
}

/** Files outside of repositories that lead to one: of git, Mercurial and Jujutsu. */
export function isPointer(path: RawPath): boolean {
  const name = basename(path)
  if (name === '.git') return true
  const parent = basename(dirname(path))
  return (name === 'sharedpath' && parent === '.hg') || (name === 'repo' && parent === '.jj')
}

/** Is it one that {@link CopiedRepositories} may change? All others are copied as they are. */
export function mayLeadOut(path: RawPath): boolean {
  return isPointer(path) || basename(dirname(path)) === 'hooks' || WITH_PATHS.test(basename(path))
}

/** Changes the files of repositories for a copy. */
export class CopiedRepositories {
  readonly #copies: readonly CopiedFolder[]
  readonly #paths: CopiedPaths

  constructor(copies: readonly CopiedFolder[], paths: CopiedPaths) {
    this.#copies = copies
    this.#paths = paths
  }

  /**
   * A file with paths; undefined for one that is copied as it is.
   *
   * @param path its real path in the original
   */
  file(path: RawPath, content: Buffer): CopiedFile | undefined {
    const name = basename(path)
    const folder = dirname(path)
    if (isPointer(path)) return this.#pointer(folder, content)
    if (basename(folder) === 'hooks') return this.#redirected(content)
    if (!WITH_PATHS.test(name)) return undefined
    if (name === 'config' || name === 'config.worktree') return this.#settings(folder, content)
    if (name === 'alternates') return this.#alternates(dirname(folder), content)
    if (name === 'hgrc') return this.#redirected(content)
    return this.#leadsOut(folder, lineOf(content)) ? LEFT_OUT : this.#redirected(content)
  }

  /** Does the administration of a linked working tree lead out? `gitdir` is its file. */
  leadsOut(folder: RawPath, gitdir: Buffer): boolean {
    return this.#leadsOut(folder, lineOf(gitdir))
  }

  #leadsOut(folder: RawPath, path: string): boolean {
    const place = posix.resolve(folder, path)
    if (copyOf(place, this.#copies) !== null) return false
    const real = realPathOf(place)
    return real === null || copyOf(real, this.#copies) === null
  }

  #redirected(content: Buffer): CopiedFile | undefined {
    const replaced = this.#paths.replaced(content)
    return replaced === null || replaced === 'binary'
      ? undefined
      : { content: replaced, ledOut: false }
  }

  #pointer(folder: RawPath, content: Buffer): CopiedFile | undefined {
    const path = lineOf(content).replace(/^gitdir: */, '')
    if (!this.#leadsOut(folder, path)) return this.#redirected(content)
    return { content: Buffer.from(NO_REPOSITORY), ledOut: true }
  }

  #settings(folder: RawPath, content: Buffer): CopiedFile | undefined {
    const kept: string[] = []
    let ledOut = false
    let goesOn = false
    for (const line of content.toString('latin1').split('\n')) {
      const section: string | null = goesOn ? null : this.#sectionOfDropped(folder, line)
      if (section !== null) kept.push(section)
      else if (!goesOn) kept.push(line)
      ledOut ||= section !== null
      // The rest of a value that is dropped goes with it.
      goesOn = (goesOn || section !== null) && line.trimEnd().endsWith('\\')
    }
    if (!ledOut) return this.#redirected(content)
    const text = Buffer.from(kept.join('\n'), 'latin1')
    return { content: this.#redirected(text)?.content ?? text, ledOut }
  }

  /** What stays of a line that sets a working tree outside; null for any other line. */
  #sectionOfDropped(folder: RawPath, line: string): string | null {
    const worktree = worktreeIn(line)
    if (worktree === null) return null
    const { section, value } = worktree
    return value === null || this.#leadsOut(folder, value) ? section : null
  }

  #alternates(objects: RawPath, content: Buffer): CopiedFile | undefined {
    const lines = content.toString('latin1').split('\n')
    const changed = lines.map((line) => {
      if (line === '' || line.startsWith('#') || line.startsWith('/')) return line
      return this.#leadsOut(objects, line) ? posix.resolve(objects, line) : line
    })
    const text = Buffer.from(changed.join('\n'), 'latin1')
    const redirected = this.#redirected(text)
    if (redirected !== undefined) return redirected
    return text.equals(content) ? undefined : { content: text, ledOut: false }
  }
}

/**
 * The value of `core.worktree`, null if it is written in an unusual way, with quotes inside or a
 * backslash; and the name of its section if it is in the same line.
 */
function worktreeIn(line: string): { section: string; value: string | null } | null {
  const equals = line.indexOf('=')
  const name = line.slice(0, Math.max(equals, 0))
  const start = name.lastIndexOf(']') + 1
  if (name.slice(start).trim().toLowerCase() !== 'worktree') return null
  const [, quoted, plain] = PLAIN_VALUE.exec(line.slice(equals + 1)) ?? []
  return { section: name.slice(0, start), value: quoted ?? plain?.trim() ?? null }
}

const PLAIN_VALUE = /^(?:[ \t]*"([^"\\]*)"[ \t]*|([^"\\#;]*))(?:[#;][^\\]*)?\r?$/

const LEFT_OUT: CopiedFile = { content: null, ledOut: true }

function lineOf(content: Buffer): string {
  return content.toString('latin1').split('\n', 1)[0]!.trimEnd()
}
