import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as http from 'runwright/http'
import * as errors from '../../lib/http/errors.js'
import { decodeError, encodeError } from '../../lib/http/transports/blocking/protocol.js'

type Coded = Error & { code: string }
type ErrorClass = new (...args: never[]) => Coded

const classes = Object.entries(errors as unknown as Record<string, ErrorClass>).filter(
  ([, exported]) => exported.prototype instanceof Error,
)

function instance(name: string, type: ErrorClass): Coded {
  if (type === (errors.HttpStatusError as unknown)) {
    return new errors.HttpStatusError('x', new http.Response(404))
  }
  const init: unknown[] = name === 'ResponseTooLargeError' ? [7] : ['why', 5, { cause: 'x' }]
  return Reflect.construct(type, init) as Coded
}

test('every error class is exported, and has its own name and code', () => {
  const codes = new Map<string, string>()
  for (const [name, type] of classes) {
    assert.equal((http as unknown as Record<string, unknown>)[name], type, `${name} is exported`)
    const error = instance(name, type)
    // Programs look for what JSON.parse() throws.
    assert.equal(error.name, name === 'InvalidJsonError' ? 'SyntaxError' : name)
    assert.match(error.code, /^ERR_HTTP(_[A-Z]+)*$/)
    assert.equal(codes.get(error.code), undefined, `${name} and ${codes.get(error.code)} differ`)
    codes.set(error.code, name)
  }
  assert.ok(classes.length > 30)
})

test('an error of the thread behind Client keeps its class, code, fields and cause', () => {
  for (const [name, type] of classes) {
    // Thrown by raiseForStatus() and json() only, on the thread of the caller.
    if (name === 'HttpStatusError' || name === 'InvalidJsonError') continue
    const error = instance(name, type)
    const wire = structuredClone(encodeError(error))
    const rebuilt = decodeError(wire) as Coded
    assert.equal(rebuilt.constructor, type, name)
    const { stack: _a, ...before } = { ...error, message: error.message, code: error.code }
    const { stack: _b, ...after } = { ...rebuilt, message: rebuilt.message, code: rebuilt.code }
    assert.deepEqual(after, before, name)
  }
  const proxy = new errors.ProxyError('no', { statusCode: 407, cause: new errors.ReadError('x') })
  const rebuilt = decodeError(structuredClone(encodeError(proxy))) as errors.ProxyError
  assert.equal(rebuilt.statusCode, 407)
  assert.ok(rebuilt.cause instanceof errors.ReadError)
  assert.equal(decodeError({ ...encodeError(proxy), name: 'constructor' }).constructor, Error)
  assert.ok(decodeError(encodeError(new RangeError('x'))) instanceof RangeError)
})
