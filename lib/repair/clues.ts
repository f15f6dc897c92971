import type { Clues, OperatorName } from './operators/patch.js'
import type { Failure } from './report.js'
import { isKeyString, type SourceFile } from './source.js'
import { stringBody } from './token.js'

type Boosts = Partial<Record<OperatorName, number>>

/** Patterns of failures, and the families of patches that each makes more likely. */
const CUES: readonly { readonly when: (failure: Failure) => boolean; readonly boosts: Boosts }[] = [
  {
    when: ({ message, actual }) =>
      isNothing(actual) || /\bundefined\b|NoneType|\bNone\b/.test(message),
    boosts: { return: 3, guard: 2.5, default: 2.5, property: 1.5, identifier: 1.2, offset: 1.3 },
  },
  {
    when: ({ message, actual }) =>
      /Promise|coroutine|awaited|asynchronous/.test(`${message}\n${actual ?? ''}`),
    boosts: { await: 4 },
  },
  {
    when: ({ message, actual }) => /\bNaN\b/.test(`${message}\n${actual ?? ''}`),
    boosts: { guard: 2.5, default: 2, property: 1.5, identifier: 1.5, return: 1.5 },
  },
  {
    when: ({ expected, actual }) => isTruth(expected) && isTruth(actual),
    boosts: {
      comparison: 1.7,
      equality: 1.7,
      logic: 1.7,
      negation: 1.7,
      boolean: 1.7,
      pattern: 1.5,
      arithmetic: 0.7,
    },
  },
  {
    when: ({ expected, actual }) => isNumber(expected) && isNumber(actual),
    boosts: { arithmetic: 1.4, number: 1.3, assignment: 1.3, string: 0.4, boolean: 0.8 },
  },
  {
    when: ({ expected, actual }) =>
      isNumber(expected) && isNumber(actual) && Math.abs(Number(expected) - Number(actual)) === 1,
    boosts: { offset: 1.5, comparison: 1.3, number: 1.3 },
  },
  {
    when: ({ expected, actual }) =>
      isNumber(expected) && isNumber(actual) && Number(expected) === -Number(actual),
    boosts: { operands: 1.8, arithmetic: 1.3 },
  },
  {
    when: ({ expected, actual }) => isText(expected) && isText(actual),
    boosts: { string: 1.5, call: 1.4, pattern: 1.4, property: 1.2, offset: 1.2 },
  },
  {
    when: ({ message }) =>
      /Missing expected (exception|rejection)|not raised|DID NOT RAISE/i.test(message),
    boosts: { comparison: 1.6, logic: 1.6, negation: 1.6, equality: 1.4, await: 2, number: 1.2 },
  },
  {
    when: ({ message }) =>
      /Cannot read prop|is not iterable|not subscriptable|has no attribute/.test(message) ||
      /KeyError|IndexError|out of range/.test(message),
    boosts: {
      guard: 2,
      default: 2,
      offset: 1.5,
      comparison: 1.3,
      identifier: 1.4,
      property: 1.6,
      return: 1.5,
    },
  },
  {
    when: ({ message }) =>
      /is not a function|is not a constructor|without 'new'|not callable/.test(message),
    boosts: { property: 2, identifier: 1.5, call: 1.5, await: 1.5 },
  },
  {
    when: ({ message }) =>
      /is not defined|before initialization|UnboundLocalError|ImportError/.test(message) ||
      /does not provide an export/.test(message),
    boosts: { identifier: 3, property: 1.5 },
  },
  {
    when: ({ expected, actual }) => sameParts(expected, actual),
    boosts: { operands: 1.6, call: 1.6, comparison: 1.3, arguments: 1.3, property: 1.2 },
  },
  {
    when: ({ message }) => /Assignment to constant|read only|not extensible|mutat/i.test(message),
    boosts: { call: 2 },
  },
]

function isNothing(text: string | undefined): boolean {
  return text !== undefined && /^(undefined|None|null|~|)$/.test(text.trim())
}

function isTruth(text: string | undefined): boolean {
  return text !== undefined && /^(true|false|True|False)$/.test(text.trim())
}

function isNumber(text: string | undefined): boolean {
  return text !== undefined && text.trim() !== '' && Number.isFinite(Number(text))
}

function isText(text: string | undefined): boolean {
  return text !== undefined && text.trim() !== '' && !isNumber(text) && !isTruth(text)
}

function sameParts(expected: string | undefined, actual: string | undefined): boolean {
  if (expected === undefined || actual === undefined || expected === actual) return false
  const parts = (text: string): string =>
    text
      .split(/[\s,[\]]+|(?<!\d)\d+: /)
      .filter((part) => part !== '')
      .sort()
      .join(' ')
  return expected.length === actual.length && parts(expected) === parts(actual)
}

/** Removes the quotes of a printed string. */
function bare(text: string): string {
  const trimmed = text.trim()
  return stringBody(trimmed)?.body ?? trimmed
}

/** Error messages that name what does not exist. */
const MISSING_NAME = new RegExp(
  [
    "\\b(\\w+) is not defined|name '(\\w+)' is not defined",
    '\\.(\\w+) is not a function|(?<![.\\w])(\\w+) is not a function',
    "has no attribute '(\\w+)'|reading '(\\w+)'",
    "export named '(\\w+)'|cannot import name '(\\w+)'|KeyError: '(\\w+)'",
  ].join('|'),
  'g',
)

/** Collects clues about the cause from failures, tests and sources. */
export function readClues(
  failures: readonly Failure[],
  sources: readonly SourceFile[],
  tests: readonly SourceFile[],
): Clues {
  const boosts = new Map<OperatorName, number>()
  for (const { when, boosts: raised } of CUES) {
    const share = failures.filter(when).length / Math.max(1, failures.length)
    if (share === 0) continue
    for (const [operator, factor] of Object.entries(raised) as [OperatorName, number][]) {
      boosts.set(operator, (boosts.get(operator) ?? 1) * factor ** Math.sqrt(share))
    }
  }
  const missing = new Set<string>()
  const strings: { expected: string; actual: string }[] = []
  const numbers = new Set<string>()
  for (const { message, expected, actual } of failures) {
    for (const found of message.matchAll(MISSING_NAME))
      missing.add(found.slice(1).find((name) => name !== undefined)!)
    for (const pair of comparedStrings(message, expected, actual))
      if (strings.length < 40) strings.push(pair)
    if (isNumber(expected) && numbers.size < 6) numbers.add(Number(expected).toString())
  }
  const properties = new Map<string, number>()
  const methods = new Map<string, number>()
  const keys = new Map<string, number>()
  const testStrings = new Set<string>()
  for (const file of [...sources, ...tests]) {
    file.tokens.forEach((token, at) => {
      const before = file.tokens[at - 1]?.text
      const isKey = file.tokens[at + 1]?.text === ':' && (before === '{' || before === ',')
      if (token.kind === 'name' && (before === '.' || before === '?.' || isKey)) {
        const counts = file.tokens[at + 1]?.text === '(' ? methods : properties
        counts.set(token.text, (counts.get(token.text) ?? 0) + 1)
      }
      const key =
        token.kind === 'string' && isKeyString(file, at) ? stringBody(token.text)?.body : undefined
      if (key !== undefined && key.length <= 60) keys.set(key, (keys.get(key) ?? 0) + 1)
    })
  }
  for (const file of tests) {
    for (const token of file.tokens) {
      const body = token.kind === 'string' ? stringBody(token.text)?.body : undefined
      if (body !== undefined && body.length > 1 && body.length <= 60 && testStrings.size < 300)
        testStrings.add(body)
    }
  }
  const common = (counts: ReadonlyMap<string, number>): Map<string, number> =>
    new Map([...counts].sort((a, b) => b[1] - a[1]).slice(0, 80))
  return {
    boost: (operator) => boosts.get(operator) ?? 1,
    strings,
    numbers: [...numbers],
    missing,
    testStrings,
    properties: common(properties),
    methods: common(methods),
    keys: common(keys),
  }
}

/** Pairs of compared strings: complete, or as lines of a printed diff, in both directions. */
function comparedStrings(
  message: string,
  expected: string | undefined,
  actual: string | undefined,
): { expected: string; actual: string }[] {
  const pairs: { expected: string; actual: string }[] = []
  const add = (left: string, right: string): void => {
    if (left !== right && left.length < 400 && right.length < 400)
      pairs.push({ expected: left, actual: right })
  }
  if (isText(expected) && actual !== undefined) {
    add(bare(expected!), bare(actual))
    // Python's assertEqual does not show which side was expected.
    if (/^AssertionError/.test(message)) add(bare(actual), bare(expected!))
  }
  const plus = [...message.matchAll(/^[ \t]*\+ (?!actual)(.*)$/gm)].map((found) =>
    bare(found[1]!.replace(/,\s*$/, '').replace(/^\s*\w+: /, '')),
  )
  const minus = [...message.matchAll(/^[ \t]*- (?!expected)(.*)$/gm)].map((found) =>
    bare(found[1]!.replace(/,\s*$/, '').replace(/^\s*\w+: /, '')),
  )
  for (let i = 0; i < Math.min(plus.length, minus.length, 5); i++) {
    add(minus[i]!, plus[i]!)
    add(plus[i]!, minus[i]!)
  }
  return pairs
}
