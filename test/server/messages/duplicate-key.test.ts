import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duplicateKey } from '../../../lib/server/messages/duplicate-key.js'

for (const { name, text, twice } of [
  { name: 'a name that comes twice', text: '{"a":1,"b":2,"a":1}', twice: 'a' },
  {
    name: 'a name that is written in two ways',
    text: String.raw`{"abc":1, "\u0061bc" : 2}`,
    twice: 'abc',
  },
  {
    name: 'a name that comes twice deep inside',
    text: '[{"x":[{"y":{"z":1,"z":{}}}]}]',
    twice: 'z',
  },
  { name: '__proto__ twice', text: '{"__proto__":1,"__proto__":2}', twice: '__proto__' },
  { name: 'an empty name twice', text: '{"":1,"":2}', twice: '' },
  {
    name: 'one name in several objects',
    text: '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}',
    twice: null,
  },
  {
    name: 'names inside of strings',
    text: String.raw`{"a":"{\"b\":1,\"b\":2}","b":"\\","c":"\":"}`,
    twice: null,
  },
  { name: 'values that are equal', text: '{"a":"x","b":"x","c":["x","x"]}', twice: null },
  { name: 'no object', text: '"a"', twice: null },
]) {
  test(`${name}: ${twice === null ? 'nothing is repeated' : 'it is found'}`, () => {
    JSON.parse(text)
    assert.equal(duplicateKey(text), twice)
  })
}
