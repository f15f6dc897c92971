/**
 * Paths whose bytes are kept, whatever their encoding: each character stands for one byte. Where a
 * path is used it is turned into bytes again, so that names need not be UTF-8.
 *
 * @module
 */
import { bytesOfName, nameOfBytes } from '../../internal/bytes.js'
import { oneLine } from './text.js'

/** A path, one character for each byte. */
export type RawPath = string

export function rawPath(text: string): RawPath {
  return isPlain(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

/** What functions of `node:fs` take. */
export function toSystem(path: RawPath): string | Buffer {
  return isPlain(path) ? path : Buffer.from(path, 'latin1')
}

/** As text; undefined when its bytes are no UTF-8. */
export function toText(path: RawPath): string | undefined {
  if (isPlain(path)) return path
  const bytes = Buffer.from(path, 'latin1')
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : undefined
}

/** As text that keeps all bytes, by lone surrogates for those that are no UTF-8. */
export function exactText(path: RawPath): string {
  return isPlain(path) ? path : nameOfBytes(Buffer.from(path, 'latin1'))
}

/** The path of {@link exactText}. */
export function exactPath(text: string): RawPath {
  return isPlain(text) ? text : bytesOfName(text).toString('latin1')
}

/** For people: in one line, with a mark in place of each byte that is no UTF-8. */
export function shownPath(path: RawPath): string {
  return oneLine(Buffer.from(path, 'latin1').toString('utf8'))
}

function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false
  return true
}
