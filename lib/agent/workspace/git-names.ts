import { trimEndOf } from '../../internal/text.js'

/** Names by which git recognises a repository, whatever the name of its folder. */
export const REPOSITORY: readonly string[] = ['HEAD', 'objects', 'refs']

/** True for the names in a folder that git takes for a repository. */
export function isRepository(names: readonly string[]): boolean {
  return REPOSITORY.every((name) => names.includes(name))
}

/**
 * True for a name that some file system takes for `.git`: with other case, trailing dots or spaces,
 * as a short name (Windows), or with zero-width characters (macOS).
 */
export function isGitFolder(name: string): boolean {
  const visible = name.replaceAll(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '')
  const plain = trimEndOf(visible, '. ').toLowerCase()
  return plain === '.git' || plain === 'git~1'
}
