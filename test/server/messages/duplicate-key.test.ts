import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duplicateKey } from '../../../lib/server/messages/body.js'

for (const { name, text, twice } of [
  { name: 'a key that occurs twice', text: '{"a":1,"b":2,"a":1}', twice: 'a' },
  {
    name: 'a key that is escaped in two ways',
    text: String.raw`{"abc":1, "\u0061bc" : 2}`,
    twice: 'abc',
  },
  {
    name: 'a nested key that occurs twice',
    text: '[{"x":[{"y":{"z":1,"z":{}}}]}]',
    twice: 'z',
  },
  { name: '__proto__ twice', text: '{"__proto__":1,"__proto__":2}', twice: '__proto__' },
  { name: 'an empty key twice', text: '{"":1,"":2}', twice: '' },
  {
    name: 'one key in several objects',
    text: '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}',
    twice: null,
  },
  {
    name: 'keys inside strings',
    text: String.raw`{"a":"{\"b\":1,\"b\":2}","b":"\\","c":"\":"}`,
    twice: null,
  },
  { name: 'equal values', text: '{"a":"x","b":"x","c":["x","x"]}', twice: null },
  { name: 'a text without objects', text: '"a"', twice: null },
]) {
  test(`${name}: ${twice === null ? 'no duplicate' : 'the duplicate is found'}`, () => {
    JSON.parse(text)
    assert.equal(duplicateKey(text), twice)
  })
}
