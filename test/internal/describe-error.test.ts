import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addCredential, asError, describeError, fieldOf } from '../../lib/internal/errors.js'

const coded = (message: string, code: string): Error => Object.assign(new Error(message), { code })
const refuses = (...names: readonly string[]): Error =>
  Object.defineProperties(
    new Error('secretive'),
    Object.fromEntries(
      names.map((name) => [name, { get: () => assert.fail(`${name} was read`) }]),
    ),
  )
const circular = new Error('round')
circular.cause = circular
const nested = new AggregateError([], '')
nested.errors.push(nested, new Error('and another'))

for (const [title, thrown, described] of [
  ['an error', new Error('it failed'), 'it failed'],
  ['a code', coded('getaddrinfo', 'EAI_AGAIN'), 'getaddrinfo (EAI_AGAIN)'],
  ['a code that the message has', coded('ENOENT: no such file', 'ENOENT'), 'ENOENT: no such file'],
  ['a code of the agent', coded('no such run', 'ERR_AGENT_UNKNOWN_RUN'), 'no such run'],
  ['a cause', new Error('a', { cause: coded('b', 'E') }), 'a: b (E)'],
  ['a cause that is quoted', new Error('a: b', { cause: new Error('b') }), 'a: b'],
  ['a cause that is none', new Error('a', { cause: null }), 'a'],
  ['a chain that closes', circular, 'round'],
  ['parts', new AggregateError([new Error('a'), 'b', new Error('a')], ''), 'a; b'],
  ['parts of itself', nested, 'AggregateError; and another'],
  ['an empty message', new TypeError(''), 'TypeError'],
  ['a text', 'no', 'no'],
  ['nothing', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a symbol', Symbol('x'), 'Symbol(x)'],
  ['a function', () => 'its code', 'a function was thrown'],
  ['an object with a message', { message: 'odd', code: 'E1' }, 'odd (E1)'],
  ['an object', {}, 'a value that is not an error was thrown'],
  ['an object without prototype', Object.create(null), 'a value that is not an error was thrown'],
  ['a message that cannot be read', refuses('message', 'cause'), 'Error'],
  ['a code that cannot be read', refuses('code', 'errors'), 'secretive'],
  ['a message that is not a string', Object.assign(new Error(), { message: { a: 1 } }), 'Error'],
  ['a revoked proxy', Proxy.revocable({}, {}), 'a value that is not an error was thrown'],
] as const) {
  test(`${title}: ${JSON.stringify(described)}`, () => {
    const value = title === 'a revoked proxy' ? revoked(thrown) : thrown
    assert.equal(describeError(value), described)
    const error = asError(value)
    assert.equal(typeof error.message, 'string')
    assert.ok(error === value || error.message === described)
  })
}

function revoked(made: unknown): unknown {
  const { proxy, revoke } = made as { readonly proxy: unknown; revoke(): void }
  revoke()
  return proxy
}

test('credentials are masked, and what is long is cut', () => {
  addCredential('hunter2-hunter2')
  const error = new Error('with hunter2-hunter2', { cause: 'and hunter2-hunter2 again' })
  assert.equal(describeError(error), 'with [secret removed]: and [secret removed] again')
  assert.equal(describeError(new Error('x'.repeat(10_000_000))).length, 8_192)
  const cut = describeError(new Error(`${'x'.repeat(8_185)}hunter2-hunter2`))
  assert.ok(!cut.includes('hunter'), cut.slice(-20))
  addCredential('hunter2-hunter2-and-more')
  assert.equal(describeError('hunter2-hunter2-and-more'), '[secret removed]')
})

test('fields of anything can be read', () => {
  assert.deepEqual([undefined, null, 1, 'a', refuses('x')].map((one) => fieldOf(one, 'x')), [
    undefined, undefined, undefined, undefined, undefined,
  ])
})
