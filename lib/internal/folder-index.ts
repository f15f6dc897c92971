import { sep } from 'node:path'

/**
 * The folders from the file system's root down to `path`, which comes last. Each ends with a
 * separator, so that `/a` is no folder of `/ab`.
 */
export function foldersTo(path: string): string[] {
  const whole = path.endsWith(sep) ? path : path + sep
  const folders: string[] = []
  for (let at = whole.indexOf(sep); at >= 0; at = whole.indexOf(sep, at + 1)) {
    folders.push(whole.slice(0, at + 1))
  }
  return folders
}

/** Users of a folder, with the number of their uses. */
type Uses<User> = Map<User, number>

/**
 * Who uses which folder, by real path. Folders overlap when they are equal or one contains the
 * other. What a call costs depends on the depth of the path, not on the number of users.
 */
export class FolderIndex<User> {
  /** For each folder: uses of itself, and uses of itself or of a folder in it. */
  readonly #folders = new Map<string, { readonly own: Uses<User>; readonly all: Uses<User> }>()

  /** Adds a use; the same use may be added several times. */
  add(user: User, path: string): void {
    const folders = foldersTo(path)
    for (const [i, name] of folders.entries()) {
      const folder = this.#folders.get(name) ?? { own: new Map(), all: new Map() }
      this.#folders.set(name, folder)
      count(folder.all, user, 1)
      if (i === folders.length - 1) count(folder.own, user, 1)
    }
  }

  /** Removes a use that was added. */
  remove(user: User, path: string): void {
    const folders = foldersTo(path)
    for (const [i, name] of folders.entries()) {
      const folder = this.#folders.get(name)
      if (folder === undefined) return
      count(folder.all, user, -1)
      if (i === folders.length - 1) count(folder.own, user, -1)
      if (folder.all.size === 0) this.#folders.delete(name)
    }
  }

  /** A user of a folder that overlaps `path`, other than `except`; undefined without one. */
  find(path: string, except?: User): User | undefined {
    const folders = foldersTo(path)
    for (const [i, name] of folders.entries()) {
      const folder = this.#folders.get(name)
      // Nobody uses this folder or one in it.
      if (folder === undefined) return undefined
      const uses = i === folders.length - 1 ? folder.all : folder.own
      for (const user of uses.keys()) if (user !== except) return user
    }
    return undefined
  }
}

function count<User>(uses: Uses<User>, user: User, change: 1 | -1): void {
  const left = (uses.get(user) ?? 0) + change
  if (left === 0) uses.delete(user)
  else uses.set(user, left)
}
