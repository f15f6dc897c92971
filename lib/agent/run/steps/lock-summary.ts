import type { LockChange, PackageChange } from '../../workspace/diff-lockfile.js'

/** Characters of what is said about all lock files. */
const MAX_CHARACTERS = 2_000
const NAME_CHARACTERS = 100
/** Versions that are named for one package. */
const MAX_VERSIONS = 3

/** What a package is called. Anything else is quoted, so that it cannot pass for our own words. */
const PLAIN = /^[\w@./:+~^<>=!*-]+$/

/**
 * The packages that changed in lock files, one line for each file: whoever approves the next step
 * also approves what was installed.
 *
 * @param show makes a text of others safe to show, in at most so many characters
 */
export function lockSummary(
  locks: readonly LockChange[],
  show: (text: string, characters: number) => string,
): string {
  const name = (text: string): string =>
    show(PLAIN.test(text) ? text : JSON.stringify(text), NAME_CHARACTERS)
  const lines: string[] = []
  let left = MAX_CHARACTERS
  for (const lock of locks) {
    const { path, packages, additions, deletions } = lock
    const begin = `Packages of ${show(path, NAME_CHARACTERS)}: `
    const counts = `+${additions} -${deletions} lines`
    left -= begin.length + ENDING
    if (packages === null) lines.push(`${begin}not told by its text (${counts})`)
    else if (packages.length + lock.more === 0) lines.push(`${begin}as they were (${counts})`)
    else {
      const named: string[] = []
      for (const one of packages) {
        const text = describe(one, name)
        left -= text.length + 2
        if (left < 0) break
        named.push(text)
      }
      const more = packages.length - named.length + lock.more
      if (more > 0) named.push(`${more} more`)
      lines.push(begin + named.join(', '))
    }
  }
  return lines.join('\n')
}

/** Room for the number of those that are not named. */
const ENDING = 40

function describe({ name, before, after }: PackageChange, show: (text: string) => string): string {
  const versions = (list: readonly string[]): string => {
    const named = list.slice(0, MAX_VERSIONS).map((version) => version && ` ${show(version)}`)
    return named.join(' and') + (list.length > MAX_VERSIONS ? ' and more' : '')
  }
  const isOther = before.length > 0 && before.join() === after.join()
  if (isOther) return `${show(name)}${versions(after)} from another source`
  if (before.length === 0) return `${show(name)}${versions(after)} added`
  if (after.length === 0) return `${show(name)}${versions(before)} removed`
  return `${show(name)}${versions(before)} →${versions(after)}`
}
