import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkOptions, type OptionKinds } from '../../lib/internal/options.js'

interface Sample {
  readonly directory: string
  readonly baseUrl?: string | undefined
  readonly maxMessageBytes?: number | null | undefined
  readonly deflate?: boolean | undefined
  readonly authorize?: (() => void) | undefined
  readonly labels?: readonly string[] | undefined
  readonly clock?: { now(): number } | undefined
  readonly verify?: boolean | string | undefined
}

const SAMPLE: OptionKinds<Sample> = {
  directory: 'string! the path of a folder', baseUrl: 'string', maxMessageBytes: 'number|null',
  deflate: 'boolean', authorize: 'function', labels: 'array', clock: 'object', verify: 'any',
}

const check = (options: unknown, of = 'new Store()'): void => checkOptions(options, SAMPLE, of)
const directory = '/tmp'

for (const [name, options, message] of [
  ['a typing error', { directroy: 1 }, /^directroy is not an option of new Store\(\); use direc/],
  ['a letter in another case', { baseURL: 1 }, /^baseURL is not .*; use baseUrl$/],
  ['snake case', { max_message_bytes: 1 }, /; use maxMessageBytes$/],
  ['British spelling', { authorise: 1 }, /; use authorize$/],
  ['a name of another library', { maxPayload: 1 }, /; use maxMessageBytes$/],
  ['a name of ws', { perMessageDeflate: 1 }, /; use deflate$/],
  ['a name like no other', { colour: 1 }, /; the options are directory, baseUrl, maxMessageB/],
  ['a name without a value', { authorise: undefined }, /; use authorize$/],
  ['a name of every object', { constructor: 1 }, /^constructor is not an option/],
  ['a name that sets prototypes', JSON.parse('{"__proto__":{}}'), /^__proto__ is not an option/],
  ['an inherited name', Object.create({ authorise: 1 }), /; use authorize$/],
  ['a string as number', { maxMessageBytes: '1' }, /^maxMessageBytes must be a number or null/],
  ['NaN', { maxMessageBytes: NaN }, /^maxMessageBytes must be a number or null, got NaN$/],
  ['null where it means nothing', { baseUrl: null }, /^baseUrl must be a string, got null$/],
  ['a string as list', { labels: 'a' }, /^labels must be an array, got a string$/],
  ['a list as object', { clock: null }, /^clock must be an object, got null$/],
  ['a number as switch', { deflate: 1 }, /^deflate must be true or false, got 1$/],
  ['an object as function', { authorize: {} }, /^authorize must be a function, got an object$/],
  ['a required option of the wrong kind', { directory: 1 }, /^directory must be the path of a f/],
  ['a required option that is missing', {}, /^new Store\(\) needs directory: the path of/],
  ['no options', undefined, /^the options of new Store\(\) must be an object, got nothing$/],
  ['null', null, /^the options of .* got null$/],
  ['a string', 'sk-secret', /^the options of .* got a string$/],
  ['a list', [], /^the options of .* got an array$/],
  ['a function', () => {}, /^the options of .* got a function$/],
] as const) {
  test(`${name} is refused with a sentence that says what to do`, () => {
    assert.throws(() => check(options), { name: 'TypeError', message })
  })
}

test('an option of an option is named by its path', () => {
  assert.throws(() => check({ directroy: 1 }, 'webhooks.endpoints[0]'), {
    message: 'webhooks.endpoints[0].directroy is not an option; use directory',
  })
  assert.throws(() => check({ deflate: 1 }, 'limits'), {
    message: 'limits.deflate must be true or false, got 1',
  })
  assert.throws(() => check(5, 'limits'), { message: 'limits must be an object, got 5' })
})

test('options may be any object: instances, without prototype, frozen, with symbols', () => {
  class Options {
    readonly directory = directory
    get verify(): string {
      return 'path'
    }
    get somethingElse(): number {
      throw new Error('read')
    }
  }
  check(new Options())
  check(Object.assign(Object.create(null), { directory }))
  check(Object.freeze({ directory, [Symbol('mine')]: 1 }))
  check(Object.create({ directory, deflate: true }))
  check({ directory, baseUrl: undefined, maxMessageBytes: null, verify: null, clock: () => 1 })
})

test('what a program adds to all objects is no option', (t) => {
  t.after(() => Reflect.deleteProperty(Object.prototype, 'authorise'))
  Object.defineProperty(Object.prototype, 'authorise', { configurable: true, enumerable: true })
  check({ directory })
  assert.throws(() => check({ directory, authorise: 1 }), /use authorize/)
})
