/**
 * Where links of a copied folder have to lead. A link that stays in the folder stays as it is. One
 * that leads back into the original leads to the same place in the copy, by a relative path, so
 * that the copy may be renamed. One that leads out leads to where it led.
 *
 * @module
 */
import { readlinkSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { isInside } from './paths.js'
import { toSystem, type RawPath } from './raw-paths.js'

/** A folder, and where its copy will be found; both are absolute. */
export interface CopiedFolder {
  readonly from: RawPath
  readonly to: RawPath
}

/** What becomes of a link. */
export interface CopiedLink {
  readonly target: RawPath
  /** Where it leads: the same place, or the same place in the copy; if out of the copy, which. */
  readonly kind: 'same' | 'redirected' | 'outside'
  /** The real path to which it leads in the original. */
  readonly end: RawPath
}

/** Links that are followed on the way of one; the system allows 40. */
const MAX_LINKS = 40
/** Names that are looked up on the way of one. */
const MAX_NAMES = 512

/**
 * @param folder the real path of the folder in which the link is
 * @param target the text of the link
 */
export function copiedLink(
  folder: RawPath,
  target: RawPath,
  copies: readonly CopiedFolder[],
): CopiedLink {
  const left = { links: MAX_LINKS, names: MAX_NAMES }
  const end = follow(folder, target, copies, left)
  // Nobody knows where it leads.
  if (left.names < 0) return { target, kind: 'outside', end: folder }
  // It leads in a circle.
  if (end === null) return { target, kind: 'same', end: folder }
  const counterpart = copyOf(end.path, copies)
  if (!end.isOwn) return { target, kind: counterpart === null ? 'outside' : 'same', end: end.path }
  if (counterpart === null) {
    return { target: target.startsWith('/') ? target : end.path, kind: 'outside', end: end.path }
  }
  const path = posix.relative(copyOf(folder, copies) ?? folder, counterpart) || '.'
  return { target: path, kind: 'redirected', end: end.path }
}

/** The place in a copy that stands for a real path; null when it is in none. */
export function copyOf(path: RawPath, copies: readonly CopiedFolder[]): RawPath | null {
  const copy = copies.find(({ from }) => isInside(path, from))
  return copy === undefined ? null : copy.to + path.slice(copy.from.length)
}

interface End {
  readonly path: RawPath
  /** Does the text itself lead out, or back in, rather than a link on the way? */
  readonly isOwn: boolean
}

function follow(
  folder: RawPath,
  target: RawPath,
  copies: readonly CopiedFolder[],
  left: { links: number; names: number },
): End | null {
  let at = target.startsWith('/') ? '/' : folder
  let isOwn = target.startsWith('/')
  let isOutside = isOwn
  for (const name of target.split('/')) {
    if (name === '' || name === '.') continue
    left.names -= 1
    if (left.names < 0) return null
    const wasOutside = isOutside
    if (name === '..') at = dirname(at)
    else {
      const child = posix.join(at, name)
      const text = linkAt(child)
      if (text === null) at = child
      else {
        left.links -= 1
        const end = left.links < 0 ? null : follow(at, text, copies, left)
        if (end === null) return null
        at = end.path
      }
    }
    isOutside = copyOf(at, copies) === null
    // It goes out by its own text, or comes back from where a link has led.
    if (isOutside && !wasOutside && name === '..') isOwn = true
    if (!isOutside && wasOutside) isOwn = true
  }
  return { path: at, isOwn }
}

function linkAt(path: RawPath): RawPath | null {
  try {
    return readlinkSync(toSystem(path), 'latin1')
  } catch {
    return null
  }
}
