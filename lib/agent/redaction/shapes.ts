/**
 * Keys that are recognizable anywhere by a distinct prefix and their length, and private keys.
 *
 * @module
 */
import type { Pattern, Span } from './scanner.js'

/**
 * Prefixes, and the pattern of what follows them. No pattern can fail after an unbounded
 * repetition, other than one that cannot begin again inside its own text: the search is linear.
 */
const KEYS: readonly (readonly [prefixes: readonly string[], rest: string])[] = [
  [['sk-ant-', 'sk-proj-', 'sk-svcacct-', 'sk-admin-', 'sk-or-'], '[\\w-]{24,}'],
  [['sk-'], '[A-Za-z0-9]{32,}'],
  [['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_'], '[A-Za-z0-9]{20,}'],
  [['gsk_', 'xai-'], '[A-Za-z0-9]{40,}'],
  [['hf_'], '[A-Za-z0-9]{30,}'],
  [['AIza'], '[\\w-]{35}'],
  [['ya29.'], '[\\w-]{20,}'],
  [['GOCSPX-'], '[\\w-]{20,}'],
  [['gho_', 'ghp_', 'ghs_', 'ghu_', 'ghr_'], '[A-Za-z0-9]{36,}'],
  [['github_pat_'], '\\w{50,}'],
  [['glpat-', 'dckr_pat_', 'hvs.'], '[\\w-]{20,}'],
  [['npm_'], '[A-Za-z0-9]{36}'],
  [['pypi-'], '[\\w-]{60,}'],
  [['dop_v1_'], '[a-f0-9]{64}'],
  [['xoxa-', 'xoxb-', 'xoxe-', 'xoxo-', 'xoxp-', 'xoxr-', 'xoxs-', 'xapp-'], '[\\w-]{20,}'],
  [['whsec_'], '[A-Za-z0-9+/]{32,}={0,2}'],
  [['SG.'], '[\\w-]{16,64}\\.[\\w-]{16,}'],
  [['AKIA', 'ASIA'], '[A-Z2-7]{16}(?![A-Za-z0-9])'],
  // A header that could begin inside another one would be tried again from there.
  [['eyJ'], '(?<![\\w-]eyJ)[\\w-]{10,}\\.eyJ[\\w-]{10,}\\.[\\w-]{10,}'],
]
const PREFIXES: readonly string[] = KEYS.flatMap(([prefixes]) => prefixes)

/** Matches every key. */
export const KEY_PATTERNS: readonly Pattern[] = KEYS.map(([prefixes, rest]) => ({
  anchors: prefixes,
  regex: new RegExp(`\\b(?:${prefixes.join('|').replaceAll('.', '\\.')})${rest}`, 'y'),
  isContext: false,
}))

/** Characters of keys. */
const KEY_CHARACTER = /[\w.+/=-]/
const WORD = /\w/

/** Offset of a key, or of the beginning of its prefix, that the end of a text may cut. */
export function openKeyAt(text: string): number {
  let start = text.length
  while (start > 0 && KEY_CHARACTER.test(text[start - 1]!)) start -= 1
  for (let at = start; at < text.length; at++) {
    if (!WORD.test(text[at]!) || (at > 0 && WORD.test(text[at - 1]!))) continue
    const rest = text.slice(at, at + 16)
    if (PREFIXES.some((prefix) => rest.startsWith(prefix) || prefix.startsWith(rest))) return at
  }
  return text.length
}

const HEADER = /-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g
const FOOTER = /-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g
/** Part of a header that the end of the text cuts. */
const OPEN_HEADER =
  /-{1,5}(?:BEGIN?|B(?:EG?)?|BEGIN (?:[A-Z0-9]{1,16} ){0,6}[A-Z0-9]{0,16}-{0,4})?$/
/** A constant of a program that works with keys: its string ends behind the header. */
const CLOSING_QUOTE = /["'`]/
/** A line of a key whose header is not there. */
const KEY_LINE = /^[A-Za-z0-9+/=]{16,}$/
/** Longest private key, in characters. */
const MAX_PRIVATE_KEY = 16_384

/** Where private keys are, and whether the end of the text may cut the last one. */
export interface PrivateKeys {
  readonly spans: readonly Span[]
  /** Where the last one begins, or its header, if it is not complete; else the text's length. */
  readonly openAt: number
}

/** Private keys, from the header to the footer, or to the end of the text without one. */
export function findPrivateKeys(text: string): PrivateKeys {
  const tail = Math.max(0, text.length - 160)
  const openAt = tail + (OPEN_HEADER.exec(text.slice(tail))?.index ?? text.length - tail)
  const spans: Span[] = []
  if (!text.includes('PRIVATE KEY')) return { spans, openAt }
  const headers = placesOf(HEADER, text).filter(({ end }) => !CLOSING_QUOTE.test(text[end] ?? ''))
  const footers = placesOf(FOOTER, text)
  let done = 0
  for (let next = 0, at = 0; ; at++) {
    const footer = footers[at]
    while ((headers[next]?.start ?? Infinity) < done) next += 1
    const header = headers[next]
    if (header !== undefined && header.start < (footer?.start ?? Infinity)) {
      spans.push({ start: header.start, end: footer?.end ?? text.length })
      if (footer === undefined) return { spans, openAt: header.start }
    } else if (footer === undefined) return { spans, openAt }
    else {
      // The lines of a key whose header is not part of the text.
      const start = startOfLines(text, Math.max(done, footer.start - MAX_PRIVATE_KEY), footer.start)
      if (start < footer.start) spans.push({ start, end: footer.end })
    }
    done = footer.end
  }
}

function placesOf(pattern: RegExp, text: string): Span[] {
  return Array.from(text.matchAll(pattern), (found) => ({
    start: found.index,
    end: found.index + found[0].length,
  }))
}

/** Where the lines of a key begin that end at `end`; the text may cut the first one. */
function startOfLines(text: string, floor: number, end: number): number {
  let start = end
  while (start > floor) {
    const before = Math.max(floor, text.lastIndexOf('\n', start - 2) + 1)
    const line = text.slice(before, start).trim()
    const isKey = before === floor ? /^[A-Za-z0-9+/=]+$/ : KEY_LINE
    if (before === start || !isKey.test(line)) break
    start = before
  }
  return start
}
