import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { rankOf } from './ranks.js'

/** A small generator of numbers, so that every run makes the same programs. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

type Language = 'js' | 'py'

/** A random function of a few statements; each class of mutation finds a place in it. */
function program(seed: number, language: Language): string {
  const next = numbersFrom(seed)
  const one = <T>(list: readonly T[]): T => list[next(list.length)]!
  const [a, b] = next(2) === 0 ? ['items', 'limit'] : ['words', 'count']
  const sign = one(['<', '<=', '>', '>='])
  const operator = one(['+', '-', '*'])
  const n = 2 + next(7)
  return language === 'js'
    ? `export function run(${a}, ${b}) {
  let total = ${next(3)}
  if (${a}.length === 0 ${one(['&&', '||'])} !${b}) return ${b}
  for (let i = 0; i < ${a}.length; i++) {
    if (${a}[i] ${sign} ${b}) total += ${a}[i] ${operator} ${n}
    else total ${one(['+=', '-='])} ${n}
  }
  return ${a}.slice(1, total).concat(Math.${one(['min', 'max'])}(total, ${b}))
}
`
    : `def run(${a}, ${b}):
    total = ${next(3)}
    if len(${a}) == 0 ${one(['and', 'or'])} not ${b}:
        return ${b}
    for i in range(1, len(${a})):
        if ${a}[i] ${sign} ${b}:
            total += ${a}[i] ${operator} ${n}
        else:
            total ${one(['+=', '-='])} ${n}
    return ${a}[1:total] + [${one(['min', 'max'])}(total, ${b})]
`
}

const OTHER_LOGIC: ReadonlyMap<string, string> = new Map([
  ['&&', ' || '],
  ['||', ' && '],
  ['and', ' or '],
  ['or', ' and '],
])

/** For each class: what is replaced, and by what, in every place where the pattern occurs. */
const MUTATIONS: readonly (readonly [
  name: string,
  pattern: RegExp,
  mutated: (found: string) => string,
  most: number,
])[] = [
  ['comparison', / (<=?|>=?) (?=\w+[):])/g, (f) => (f.trim().startsWith('<') ? ' > ' : ' < '), 55],
  ['equality', /===?/g, (f) => (f === '===' ? '!==' : '!='), 20],
  ['logic', / (&&|\|\||and|or) /g, (f) => OTHER_LOGIC.get(f.trim())!, 20],
  ['negation', /!(?=\w)|not /g, () => '', 80],
  ['arithmetic', / [+*] (?=\d)/g, (f) => (f === ' + ' ? ' - ' : ' / '), 35],
  ['assignment', / [+-]= /g, (f) => (f === ' += ' ? ' -= ' : ' += '), 30],
  ['number', /(?<=total = )\d/g, (f) => String(Number(f) + 1), 60],
  ['function', /\b(min|max)\b/g, (f) => (f === 'min' ? 'max' : 'min'), 60],
  ['update', /i\+\+/g, () => 'i--', 20],
  ['argument order', /\(total, (\w+)\)/g, (f) => f.replace(/\((\w+), (\w+)\)/, '($2, $1)'), 30],
  ['conjunct removed', / (&&|\|\||and|or) (!|not )\w+/g, () => '', 400],
  ['statement of a name', /\btotal\b(?=, )/g, () => 'i', 120],
]

describe('the reverse of every class of mutation is made', () => {
  for (const language of ['js', 'py'] as const) {
    for (const [name, pattern, mutated, most] of MUTATIONS) {
      if (language === 'py' && name === 'update') continue
      test(`${name} in ${language}`, () => {
        let places = 0
        for (let seed = 1; seed <= 12; seed++) {
          const wanted = program(seed, language)
          for (const found of wanted.matchAll(pattern)) {
            const end = found.index + found[0].length
            const broken = wanted.slice(0, found.index) + mutated(found[0]) + wanted.slice(end)
            const rank = rankOf(`a.${language}`, broken, wanted)
            assert.ok(rank > 0 && rank <= most, `rank ${rank} of seed ${seed}:\n${broken}`)
            places++
          }
        }
        assert.ok(places > 0, 'some program has a place for it')
      })
    }
  }
})
