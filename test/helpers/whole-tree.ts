import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** What {@link wholeTree} compares besides names, kinds, contents and permissions. */
export interface WholeTreeOptions {
  /** Times of last change. @defaultValue true */
  readonly times?: boolean
  /** Which names are those of one file. @defaultValue true */
  readonly links?: boolean
}

/**
 * Everything that is in a folder, by path (bytes as latin1), one line for each entry, so that two
 * folders, or one before and after, can be compared byte by byte.
 */
export function wholeTree(
  folder: string,
  { times = true, links = true }: WholeTreeOptions = {},
): Record<string, string> {
  const found: Record<string, string> = {}
  const firstNames = new Map<bigint, string>()
  const visit = (path: string, relative: string): void => {
    const system = Buffer.from(path, 'latin1')
    const stats = lstatSync(system, { bigint: true })
    const mode = (Number(stats.mode) & 0o7777).toString(8)
    // Functions of Node take times as numbers, which have no more digits.
    const time = times ? ` ${Number(stats.mtimeNs / 1_000n)}` : ''
    if (stats.isDirectory()) {
      found[relative] = `folder ${mode}${time}`
      for (const name of readdirSync(system, { encoding: 'latin1' })) {
        visit(`${path}/${name}`, relative === '' ? name : `${relative}/${name}`)
      }
    } else if (stats.isSymbolicLink()) {
      found[relative] = `link ${readlinkSync(system, 'latin1')}${time}`
    } else if (stats.isFile()) {
      const hash = createHash('sha256').update(readFileSync(system)).digest('hex')
      const first = firstNames.get(stats.ino)
      if (first === undefined) firstNames.set(stats.ino, relative)
      const same = links && first !== undefined ? ` same as ${first}` : ''
      found[relative] = `file ${mode}${time} ${stats.size} ${hash}${same}`
    } else found[relative] = `special ${mode}`
  }
  visit(Buffer.from(folder).toString('latin1'), '')
  return found
}
