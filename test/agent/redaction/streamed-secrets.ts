import { StreamRedactor } from '../../../lib/agent/redaction/stream-redactor.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'

const PEM_BODY = 'MIIEow+/AB\n'.repeat(12)
const PEM = `-----BEGIN RSA PRIVATE KEY-----\n${PEM_BODY}-----END RSA PRIVATE KEY-----`
const JWT = `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(20)}`
export const NAMED: readonly string[] = [
  'hunter2-horse',
  'hunter2-horse-battery',
  'two\nlines "quoted"',
  'aXaXab',
  '\u{1f511}secretvalue99',
]
export const redactor: Redactor = new Redactor(NAMED)

/** Redacts a text whose pieces end at these offsets. */
export function shownOf(text: string, ends: readonly number[]): string[] {
  const stream = new StreamRedactor(redactor)
  const pieces = [0, ...ends].map((at, i) => text.slice(at, ends[i] ?? text.length))
  return [...pieces.map((piece) => stream.push(piece)), stream.end()]
}

export const SECRETS: readonly (readonly [string, string])[] = [
  ['a name that begins another', 'hunter2-horse'],
  ['the longer of both', 'hunter2-horse-battery'],
  ['a text of several lines', NAMED[2]!],
  ['a text as it stands in JSON', JSON.stringify(NAMED[2]).slice(1, -1)],
  ['a text as it stands in a URL', encodeURIComponent(NAMED[2]!)],
  ['a name that begins like itself', 'aXaXab'],
  ['a name that begins with two UTF-16 units', NAMED[4]!],
  ['a key of Anthropic', `sk-ant-${'api03-Ab_'.repeat(5)}`],
  ['a key of GitHub', `ghp_${'aB3'.repeat(13)}`],
  ['a key of Amazon', 'AKIAABCDEFGHIJKLMNOP'],
  ['a web token', JWT],
  ['a private key', PEM],
]
