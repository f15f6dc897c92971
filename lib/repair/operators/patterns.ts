import { stringBody } from '../token.js'
import type { Operator } from './patch.js'

const SWAPS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries<readonly string[]>({
    '+': ['*', '', '?'],
    '*': ['+', '', '?'],
    '?': ['', '*', '+'],
    '\\d': ['\\D', '\\w', '\\s'],
    '\\D': ['\\d', '\\W'],
    '\\w': ['\\W', '\\d', '\\S', '\\s'],
    '\\W': ['\\w', '\\s', '\\S'],
    '\\s': ['\\S', '\\W', '\\w', '\\d'],
    '\\S': ['\\s', '\\w', '\\W', '\\d'],
    '\\b': ['\\B', ''],
    '\\B': ['\\b'],
    '[': ['[^'],
    '[^': ['['],
    '(?=': ['(?!'],
    '(?!': ['(?='],
    '(?<=': ['(?<!'],
    '(?<!': ['(?<='],
    '(?:': ['('],
  }),
)

const PIECES = new RegExp(
  [
    '\\\\[\\s\\S]',
    '\\{\\d+(?:,\\d*)?\\}',
    '\\[\\^?',
    '\\(\\?(?::|=|!|<=|<!|<\\w+>|P<\\w+>)',
    '[\\s\\S]',
  ].join('|'),
  'g',
)

/** Members that character classes often lack. */
const MEMBERS: readonly string[] = ['_', '-', '.', '\\d', '\\w', '\\s', 'A-Z', 'a-z', '0-9', ' ']
/** Pieces of one expression that are changed. */
const MAX_PIECES = 80

/** Changes flags, anchors, quantifiers, groups and character classes of a regular expression. */
export const pattern: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  const python = file.language === 'python'
  let open = '/'
  let body: string
  let close: string
  if (token.kind === 'regex') {
    const slash = token.text.lastIndexOf('/')
    body = token.text.slice(1, slash)
    const flags = token.text.slice(slash + 1)
    close = `/${flags}`
    for (const flag of ['g', 'i', 'm', 'u', 's', 'y']) {
      const other = flags.includes(flag) ? flags.replace(flag, '') : flags + flag
      const usual = flag === 'g' || flag === 'i' ? 0.6 : flag === 'm' ? 0.3 : 0.08
      context.replace(at, at, `/${body}/${other}`, 'pattern', usual)
      if (!flags.includes(flag) && flags !== '')
        context.replace(at, at, `/${body}/${flag}${flags}`, 'pattern', 0.9 * usual)
    }
  } else if (python && token.kind === 'string' && /^[rR]/.test(token.text)) {
    const parsed = stringBody(token.text)
    if (parsed === null) return
    body = parsed.body
    open = parsed.prefix + parsed.quote
    close = parsed.quote
  } else return
  const pieces = [...body.matchAll(PIECES)].slice(0, MAX_PIECES)
  // The longer an expression, the less likely is each of its pieces to be wrong.
  const share = Math.max(0.12, Math.min(1, 6 / pieces.length))
  const put = (from: number, to: number, text: string, weight: number): void =>
    context.replace(
      at,
      at,
      open + body.slice(0, from) + text + body.slice(to) + close,
      'pattern',
      weight * (0.35 + 0.65 * share),
    )
  if (body.startsWith('^')) put(0, 1, '', 0.4)
  else put(0, 0, '^', 0.5)
  if (body.endsWith('$') && !body.endsWith('\\$')) put(body.length - 1, body.length, '', 0.4)
  else put(body.length, body.length, '$', 0.5)
  let classStart = -1
  for (const [i, found] of pieces.entries()) {
    const [piece] = found
    const from = found.index
    const to = from + piece.length
    const next = pieces[i + 1]?.[0] ?? ''
    if (classStart < 0) {
      for (const other of SWAPS.get(piece) ?? []) put(from, to, other, 0.4)
      if (piece.startsWith('{') && piece.length > 2) counts(from, to, piece)
      if (piece === '.') put(from, to, '\\.', 0.25)
      if (piece === '\\.') put(from, to, '.', 0.12)
      // Anchors of one alternative or group.
      if (piece === '|') {
        put(to, to, '^', 0.2)
        put(from, from, '$', 0.25)
      }
      if (piece.startsWith('(') && from === 0) put(to, to, '^', 0.1)
      const isAtom = piece === ')' || piece === '.' || /^\\[dwsDWS.]$/.test(piece)
      if (isAtom || /^[\w\-:/\\.]/.test(piece)) quantify(to, next, isAtom ? 0.25 : 0.05)
      if (piece.startsWith('[')) {
        classStart = to
        if (piece === '[') put(to, to, '^', 0.3)
      }
    } else if (piece === ']' && from > classStart) {
      const inside = body.slice(classStart, from)
      for (const member of MEMBERS) if (!inside.includes(member)) put(from, from, member, 0.05)
      quantify(to, next, 0.25)
      classStart = -1
    } else if (/^\\[dwsDWS]$/.test(piece)) {
      for (const other of SWAPS.get(piece) ?? []) put(from, to, other, 0.3)
    } else if (next !== '-' && body[from - 1] !== '-' && piece !== '-') put(from, to, '', 0.05)
  }

  function quantify(to: number, next: string, weight: number): void {
    if (/^[+*?{]/.test(next)) {
      if (next !== '?') put(to + next.length, to + next.length, '?', 0.25 * weight)
      return
    }
    for (const sign of ['+', '*', '?']) put(to, to, sign, weight)
  }

  function counts(from: number, to: number, text: string): void {
    const [low, high] = text.slice(1, -1).split(',')
    const value = Number(low)
    const rest = high === undefined ? '' : `,${high}`
    put(from, to, `{${value + 1}${rest}}`, 0.3)
    if (value > 0) put(from, to, `{${value - 1}${rest}}`, 0.3)
    put(from, to, '', 0.15)
    if (high === undefined || high === '') return
    put(from, to, `{${value},${Number(high) + 1}}`, 0.3)
    put(from, to, `{${value},${Number(high) - 1}}`, 0.3)
    put(from, to, `{${value},}`, 0.1)
    put(from, to, `{${high}}`, 0.1)
  }
}
