/**
 * Paths of files in URLs. They are relative, with forward slashes; a name may have any byte but
 * `/` and NUL, each as itself or percent-encoded (RFC 3986, section 2.1).
 *
 * @module
 */
import { bytesOfName, nameOfBytes } from '../../internal/bytes.js'
import { invalidField, type ProblemError } from '../errors.js'

/** Bytes of a path, as on Linux. */
const MAX_BYTES = 4_096

/**
 * The path of a file as the end of a URL's path has it.
 *
 * @throws `ProblemError` 422 for what can be no path: an encoded slash or NUL, an incomplete
 * encoding, an empty name, `.` and `..`, and over 4096 bytes.
 */
export function decodeFilePath(sent: string): string {
  if (sent.length > 3 * MAX_BYTES) throw invalid(`must have at most ${MAX_BYTES} bytes`)
  if (/[^\x21-\x7e]/.test(sent)) throw invalid('must be percent-encoded')
  const names = sent.split('/').map(decodeName)
  const bytes = names.reduce((sum, name) => sum + name.length + 1, -1)
  if (bytes > MAX_BYTES) throw invalid(`must have at most ${MAX_BYTES} bytes`)
  return names.map(nameOfBytes).join('/')
}

function decodeName(sent: string): Uint8Array {
  if (/%(?![0-9a-f]{2})/i.test(sent)) throw invalid('has a % without two hexadecimal digits')
  const text = sent.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  const name = Buffer.from(text, 'latin1')
  if (text === '') throw invalid('has an empty name')
  if (text === '.' || text === '..') throw invalid(`has the name ${text}`)
  if (name.includes(0x2f)) throw invalid('has an encoded slash')
  if (name.includes(0)) throw invalid('has a NUL')
  return name
}

function invalid(detail: string): ProblemError {
  return invalidField('/path', detail, 'path')
}

/** The end of a URL's path that {@link decodeFilePath} reads as `path`. */
export function encodeFilePath(path: string): string {
  return path.split('/').map(encodeName).join('/')
}

function encodeName(name: string): string {
  const text = bytesOfName(name).toString('latin1')
  return text.replace(/[^\w.~-]/g, (char) => {
    return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
}

/** Characters of the name of a download. */
const MAX_NAME = 255

/**
 * A Content-Disposition by which browsers store and never show the content, under the last name of
 * a path: in ASCII for old clients, and in full (RFC 6266, RFC 8187).
 */
export function attachment(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).slice(0, MAX_NAME)
  const plain = name.replace(/[^\w.-]/gu, '_')
  // What stands for no character is U+FFFD here: browsers refuse names that are not UTF-8.
  const full = encodeName(Buffer.from(name).toString())
  return `attachment; filename="${plain}"; filename*=UTF-8''${full}`
}
