import { shownPath, type RawPath } from './raw-paths.js'

/** Paths that a note names. */
const NAMED = 10

export type NoteKind =
  | 'special' | 'unreadable' | 'deep' | 'changing' | 'readOnly' | 'outside' | 'repository'
  | 'worktree' | 'gitLink' | 'setting' | 'binary' | 'mention'

/** What a copy has to tell, by kind: the sentence, in which `%` stands for paths. */
const SENTENCES: Readonly<Record<NoteKind, string>> = {
  special: 'Sockets, pipes and devices were left out: %.',
  unreadable: 'What cannot be read was left out: %.',
  deep: 'Folders at a depth of more than 250 were left out: %.',
  changing: 'These files were being changed while they were copied: %.',
  readOnly:
    '% cannot be changed by commands, because it is the original that they see there ' +
    '(the file system cannot share blocks of files).',
  outside:
    'These links lead out of the folder, to the same places as before; what is written through ' +
    'them is not part of the copy: %.',
  repository:
    'Version control does not work in the copy for %, because the repository is not in the folder.',
  worktree:
    'Linked working trees outside the folder are unknown to the repository in the copy: %.',
  gitLink: 'Links of repositories that lead out of the folder were left out: %.',
  setting: 'Settings of repositories that lead out of the folder were left out: %.',
  binary: 'These files hold the path of the original and cannot be redirected to the copy: %.',
  mention:
    'These files name the original folder by its absolute path; a program that follows it gets ' +
    'to the original: %.',
}

/** What a copy has to tell: counts, and the first paths of each kind. */
export class CopyNotes {
  readonly #found: Map<NoteKind, { count: number; readonly paths: string[] }> = new Map()

  add(kind: NoteKind, path: RawPath): void {
    const found = this.#found.get(kind) ?? { count: 0, paths: [] }
    this.#found.set(kind, found)
    found.count += 1
    if (found.paths.length < NAMED) found.paths.push(shownPath(path))
  }

  /** One sentence for each kind. */
  sentences(): readonly string[] {
    return [...this.#found].map(([kind, { count, paths }]) => {
      const more = count > paths.length ? ` and ${count - paths.length} more` : ''
      return SENTENCES[kind].replace('%', () => `${paths.join(', ')}${more}`)
    })
  }
}
