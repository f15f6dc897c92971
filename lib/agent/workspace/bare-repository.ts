/**
 * What is left of a repository in the copy of a sealed check: enough for git to read commits,
 * branches and the index, and nothing that has git run a program or look elsewhere. So there are no
 * hooks, attributes with filters, included settings, monitors of the file system or aliases. A
 * repository is only found as a folder with the name `.git`, or below one (`modules`, for
 * submodules): one in another place could have any settings, and git gets there by a link or by a
 * file in place of the folder.
 *
 * Alternates stay: objects are known by their hashes, wherever they are read from.
 *
 * @module
 */
import { posix } from 'node:path'
import { trimEndOf } from '../../internal/text.js'
import { realPathOf } from './copied-paths.js'
import { isInside } from './paths.js'
import type { RawPath } from './raw-paths.js'

/** Settings without which git would misread a repository, and values that they can have. */
const KEPT: Readonly<Record<string, RegExp>> = {
  'core.repositoryformatversion': /^[01]$/,
  'core.bare': /^(?:true|false)$/,
  'core.filemode': /^(?:true|false)$/,
  'core.ignorecase': /^(?:true|false)$/,
  'core.symlinks': /^(?:true|false)$/,
  'core.precomposeunicode': /^(?:true|false)$/,
  'core.autocrlf': /^(?:true|false|input)$/,
  'core.eol': /^(?:lf|crlf|native)$/,
  'extensions.objectformat': /^sha(?:1|256)$/,
  'extensions.compatobjectformat': /^sha(?:1|256)$/,
  'extensions.refstorage': /^(?:files|reftable)$/,
  'extensions.noop': /^\w*$/,
  'extensions.preciousobjects': /^(?:true|false)$/,
  'extensions.relativeworktrees': /^(?:true|false)$/,
}

/** Entries of a repository that are left out. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'hooks', 'info', 'config.worktree', 'hgrc', 'hgrc-not-shared',
])

/** Is an entry directly in a repository left out? */
export function isLeftOutOfBare(name: RawPath): boolean {
  return LEFT_OUT.has(name)
}

/**
 * Does a folder hold settings and hooks, in or below one with the name `.git`? Git asks for no more
 * than these names when another folder names it as the one it belongs to.
 *
 * @param path relative
 */
export function isTopOfGit(path: RawPath, names: readonly RawPath[]): boolean {
  if (/(?:^|\/)\.(?:git|hg)$/.test(path)) return true
  return `/${path}/`.includes('/.git/') && names.includes('objects') && names.includes('refs')
}

/**
 * Does a file have git use a repository at another place than in or below a folder with the name
 * `.git`? True as well for links of working trees that are not as git writes them.
 *
 * @param path the real path of the file, which lies in `root`
 */
export function leadsElsewhere(path: RawPath, content: Buffer, root: RawPath): boolean {
  const [name, folder] = [posix.basename(path), posix.dirname(path)]
  if (name !== '.git' && name !== 'commondir') return false
  const line = trimEndOf(content.toString('latin1').split('\n', 1)[0]!, ' \r')
  if (name === 'commondir') {
    const above = folder.slice(root.length).split('/')
    const isWorktree = above.at(-2) === 'worktrees' && above.slice(0, -2).includes('.git')
    return `${folder.slice(root.length)}/`.includes('/.git/') && !(isWorktree && line === '../..')
  }
  const target = realPathOf(posix.resolve(folder, line.replace(/^gitdir: */, '')))
  return target === null || !isInside(target, root) ||
    !`${target.slice(root.length)}/`.includes('/.git/')
}

/** Settings with only what git needs. */
export function bareSettings(content: Buffer): string {
  const found = new Map<string, string>()
  let section = ''
  let goesOn = false
  for (const line of content.toString('latin1').split('\n')) {
    const text = line.trim()
    const isRest = goesOn
    goesOn = text.endsWith('\\')
    if (isRest || goesOn) continue
    const header = /^\[([A-Za-z]+)\](.*)$/.exec(text)
    if (header !== null) section = header[1]!.toLowerCase()
    // `[section "name"]`, and whatever is written in an unusual way.
    else if (text.startsWith('[')) section = ''
    const [, key, value] = /^([A-Za-z]+)\s*=\s*(\w+)$/.exec((header?.[2] ?? text).trim()) ?? []
    const name = `${section}.${key?.toLowerCase()}`
    if (value !== undefined && KEPT[name]?.test(value) === true) found.set(name, value)
  }
  const lines = [...found].map(([name, value]) => {
    const [group, key] = name.split('.')
    return `[${group}]\n\t${key} = ${value}\n`
  })
  return lines.join('')
}
