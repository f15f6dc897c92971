/**
 * Canaries for JavaScript: assertions that must fail, made in the processes that run tests. One
 * that passes shows that code under test has broken it.
 *
 * 1. Nothing here is looked up when a canary runs: what it needs is kept when the process starts,
 *    before any code of the workspace runs.
 * 2. A canary demands behaviour, not identity: a mock that a test installs and removes, a plugin
 *    or an own matcher is no alarm as long as false assertions fail.
 * 3. Values differ in each process, so that code cannot tell a canary from a test by them.
 * 4. A watch that began and did not end shows that somebody kept the canaries from running.
 *
 * Each watch writes a file of its own (see `canaries.ts`). It also tells who has registered hooks,
 * changed tests, or replaced functions of Node and of the language, with the file: whether that is
 * code under test is known to the reader alone.
 *
 * @module
 */

/** The module that all hooks share; it removes itself from the cache of modules. */
export const CANARIES: string = String.raw`
'use strict'
const assert = require('node:assert')
const { EventEmitter } = require('node:events')
const fs = require('node:fs')
const Module = require('node:module')
const { isAbsolute, relative } = require('node:path')
const { caller, filesOf, keep } = require('./places.cjs')
const { closeSync, lstatSync, openSync, writeSync } = fs
const { apply, defineProperty, getOwnPropertyDescriptor: describe } = Reflect
const { stringify } = JSON
const { keys } = Object
const { bigint: now } = process.hrtime
const PID = process.pid
const HERE = @HERE@
const ROOT = @ROOT@
const NONCE = '@NONCE@'
const has = Set.prototype.has
const addTo = Set.prototype.add
const SetOf = Set
const DateOf = Date
const callable = (value) => typeof value === 'function'

for (const file of keys(require.cache)) if (file.startsWith(HERE)) delete require.cache[file]

const random = String(now() % 1000003n)
const A = 'v' + random
const B = 'w' + random
const N = Number(random)

/** Calls that must throw, by the name of the function. */
const ASSERTIONS = {
  ok: (f) => f(0, A),
  equal: (f) => f(N, N + 1, A),
  notEqual: (f) => f(N, N, A),
  strictEqual: (f) => f(A, B, A),
  notStrictEqual: (f) => f(A, A, A),
  deepEqual: (f) => f({ a: [A] }, { a: [B] }, A),
  notDeepEqual: (f) => f({ a: [A] }, { a: [A] }, A),
  deepStrictEqual: (f) => f({ a: [A] }, { a: [B] }, A),
  notDeepStrictEqual: (f) => f({ a: [A] }, { a: [A] }, A),
  partialDeepStrictEqual: (f) => f({ a: A }, { a: B }, A),
  throws: (f) => f(() => {}, A),
  doesNotThrow: (f) => f(() => { throw new RangeError(A) }, A),
  match: (f) => f(A, /^w/, A),
  doesNotMatch: (f) => f(A, /^v/, A),
  fail: (f) => f(A),
  ifError: (f) => f(new RangeError(A)),
}

/** Functions that were there at the start; older versions of Node lack some. */
function listAssertions(name, object) {
  const list = []
  for (const key of keys(ASSERTIONS)) {
    if (!callable(object[key])) continue
    list[list.length] = { name: name + '.' + key, key, call: ASSERTIONS[key] }
  }
  return { name, object, list }
}
const OWN = [listAssertions('assert', assert), listAssertions('assert.strict', assert.strict)]

/** True when the call fails, as it must. */
function fails(call, subject) {
  try {
    call(subject)
    return false
  } catch {
    return true
  }
}

function checkAssert(note, { name, object, list }) {
  if (!fails(ASSERTIONS.ok, object)) note(name)
  for (let i = 0; i < list.length; i++) {
    const { name, key, call } = list[i]
    const current = object[key]
    if (!fails(() => call((...args) => apply(current, object, args)))) note(name)
  }
}

/** Functions of the language by which tests compare, as they are now: what must be true. */
const BUILT_IN = {
  'Math.abs': () => Math.abs(-1 - N) === N + 1,
  'Math.min': () => Math.min(N + 1, N) === N,
  'Math.max': () => Math.max(N, N + 1) === N + 1,
  'Math.round': () => Math.round(N + 0.25) === N,
  'Math.floor': () => Math.floor(N + 0.75) === N,
  'Math.trunc': () => Math.trunc(N + 0.75) === N,
  'Number.isNaN': () => !Number.isNaN(N),
  'Number.isInteger': () => !Number.isInteger(N + 0.5),
  'Number.isFinite': () => !Number.isFinite(Infinity),
  'Object.is': () => !Object.is(A, B),
  'Object.keys': () => Object.keys({ a: A, b: B }).length === 2,
  'Object.entries': () => Object.entries({ a: A, b: B }).length === 2,
  'Object.values': () => Object.values({ a: A })[0] === A,
  'JSON.stringify': () => JSON.stringify([A]) === '["' + A + '"]',
  'JSON.parse': () => JSON.parse('["' + A + '"]')[0] === A,
  'RegExp.prototype.test': () => !/^w/.test(A) && /^v/.test(A),
  'RegExp.prototype.exec': () => /^w/.exec(A) === null && /^v/.exec(A) !== null,
  'String.prototype.match': () => A.match(/^w/) === null && A.match(/^v/) !== null,
  'String.prototype.includes': () => !A.includes(B) && A.includes(A),
  'String.prototype.startsWith': () => !A.startsWith('w') && A.startsWith('v'),
  'String.prototype.endsWith': () => !A.endsWith('w') && A.endsWith(random),
  'String.prototype.indexOf': () => A.indexOf(B) === -1,
  'Array.isArray': () => !Array.isArray(A) && Array.isArray([A]),
  'Array.prototype.every': () => ![A, B].every((one) => one === A),
  'Array.prototype.some': () => ![A].some((one) => one === B) && [A].some((one) => one === A),
  'Array.prototype.includes': () => ![A].includes(B) && [A].includes(A),
  'Array.prototype.indexOf': () => [A].indexOf(B) === -1,
  'Array.prototype.filter': () => [A, B].filter((one) => one === B)[0] === B,
  'Array.prototype.find': () => [A].find((one) => one === B) === undefined,
  'Array.prototype.map': () => [A, B].map((one) => one)[1] === B,
  'Array.prototype.forEach': () => {
    let last
    ;[A, B].forEach((one) => { last = one })
    return last === B
  },
  'Array.prototype[Symbol.iterator]': () => {
    let last
    for (const one of [A, B]) last = one
    return last === B
  },
  'Set.prototype.has': () => !new SetOf([A]).has(B) && new SetOf([A]).has(A),
}
const BUILT_IN_NAMES = keys(BUILT_IN)

function checkBuiltIn(note) {
  for (let i = 0; i < BUILT_IN_NAMES.length; i++) {
    const name = BUILT_IN_NAMES[i]
    let holds = false
    try {
      holds = BUILT_IN[name]()
    } catch {}
    if (!holds) note(name)
  }
}

/** What a file that calls require() now would get. */
function required(name) {
  try {
    return apply(Module.prototype.require, module, [name])
  } catch {
    return undefined
  }
}

/** Calls of expect() that must throw, for Jest and Vitest alike. */
const EXPECTATIONS = {
  toBe: (expect) => expect(A).toBe(B),
  'not.toBe': (expect) => expect(A).not.toBe(A),
  toEqual: (expect) => expect({ a: [A] }).toEqual({ a: [B] }),
  'toEqual(number)': (expect) => expect([N]).toEqual([N + 1]),
  'toEqual(boolean)': (expect) => expect([true]).toEqual([false]),
  'toEqual(null)': (expect) => expect([null]).toEqual([N]),
  'toEqual(date)': (expect) => expect([new DateOf(N)]).toEqual([new DateOf(N + 1)]),
  'toStrictEqual(number)': (expect) => expect([N]).toStrictEqual([N + 1]),
  'not.toEqual': (expect) => expect({ a: [A] }).not.toEqual({ a: [A] }),
  toStrictEqual: (expect) => expect({ a: A }).toStrictEqual({ a: B }),
  toBeTruthy: (expect) => expect(0).toBeTruthy(),
  toBeFalsy: (expect) => expect(A).toBeFalsy(),
  toBeNull: (expect) => expect(A).toBeNull(),
  toBeDefined: (expect) => expect(undefined).toBeDefined(),
  toBeUndefined: (expect) => expect(A).toBeUndefined(),
  toBeGreaterThan: (expect) => expect(N).toBeGreaterThan(N + 1),
  toBeLessThan: (expect) => expect(N).toBeLessThan(N - 1),
  toBeCloseTo: (expect) => expect(N).toBeCloseTo(N + 1),
  toContain: (expect) => expect([A]).toContain(B),
  toContainEqual: (expect) => expect([{ a: A }]).toContainEqual({ a: B }),
  toHaveLength: (expect) => expect([A]).toHaveLength(2),
  toHaveProperty: (expect) => expect({ a: A }).toHaveProperty('a', B),
  toMatch: (expect) => expect(A).toMatch(/^w/),
  toMatchObject: (expect) => expect({ a: A, b: 1 }).toMatchObject({ a: B }),
  toBeInstanceOf: (expect) => expect({}).toBeInstanceOf(SetOf),
  toThrow: (expect) => expect(() => {}).toThrow(),
  'toThrow(message)': (expect) => expect(() => { throw new RangeError(A) }).toThrow(B),
  'not.toThrow': (expect) => expect(() => { throw new RangeError(A) }).not.toThrow(),
  'expect.any': (expect) => expect({ a: N }).toEqual({ a: expect.any(String) }),
  'expect.anything': (expect) => expect({ a: null }).toEqual({ a: expect.anything() }),
  'expect.objectContaining': (expect) =>
    expect({ a: A }).toEqual(expect.objectContaining({ a: B })),
  'expect.arrayContaining': (expect) => expect([A]).toEqual(expect.arrayContaining([B])),
  'expect.stringContaining': (expect) => expect(A).toEqual(expect.stringContaining(B)),
  'expect.stringMatching': (expect) => expect(A).toEqual(expect.stringMatching(/^w/)),
}
const EXPECTED = keys(EXPECTATIONS)

/** Calls of Chai that must throw. */
const CHAI = {
  'assert.equal': ({ assert }) => assert.equal(N, N + 1),
  'assert.strictEqual': ({ assert }) => assert.strictEqual(A, B),
  'assert.deepEqual': ({ assert }) => assert.deepEqual({ a: [A] }, { a: [B] }),
  'assert.isTrue': ({ assert }) => assert.isTrue(false),
  'assert.throws': ({ assert }) => assert.throws(() => {}),
  'expect().to.equal': ({ expect }) => expect(A).to.equal(B),
  'expect().to.deep.equal': ({ expect }) => expect({ a: [A] }).to.deep.equal({ a: [B] }),
  'expect().to.not.equal': ({ expect }) => expect(A).to.not.equal(A),
  'expect().to.be.true': ({ expect }) => expect(false).to.be.true,
  'expect().to.throw': ({ expect }) => expect(() => {}).to.throw(),
  'expect().to.include': ({ expect }) => expect([A]).to.include(B),
}
const CHAI_CALLS = keys(CHAI)
const { cache } = require

/** Chai where a file has required it already; it is never loaded for the canaries. */
function checkChai(note) {
  const files = keys(cache)
  for (let i = 0; i < files.length; i++) {
    if (!/\/node_modules\/chai\/(?:chai|index|lib\/chai)\.c?js$/.test(files[i])) continue
    const chai = cache[files[i]].exports
    if (!callable(chai?.expect) || !callable(chai.assert)) continue
    for (let j = 0; j < CHAI_CALLS.length; j++) {
      if (!fails(CHAI[CHAI_CALLS[j]], chai)) note('chai ' + CHAI_CALLS[j])
    }
  }
}

/** Calls of tape that must report a failure. */
const TAPE = {
  ok: (t) => t.ok(0),
  notOk: (t) => t.notOk(A),
  equal: (t) => t.equal(A, B),
  notEqual: (t) => t.notEqual(A, A),
  deepEqual: (t) => t.deepEqual({ a: [A] }, { a: [B] }),
  notDeepEqual: (t) => t.notDeepEqual({ a: [A] }, { a: [A] }),
  throws: (t) => t.throws(() => {}),
  doesNotThrow: (t) => t.doesNotThrow(() => { throw new RangeError(A) }),
  match: (t) => t.match(A, /^w/),
  error: (t) => t.error(new RangeError(A)),
  fail: (t) => t.fail(A),
}
const TAPE_CALLS = keys(TAPE)

/** tape where a file has required it already. */
function checkTape(note) {
  const files = keys(cache)
  for (let i = 0; i < files.length; i++) {
    if (!/\/node_modules\/tape\/index\.js$/.test(files[i])) continue
    const { Test } = cache[files[i]].exports
    if (!callable(Test)) continue
    for (let j = 0; j < TAPE_CALLS.length; j++) {
      const name = TAPE_CALLS[j]
      let failed = false
      const test = new Test('canary', {}, () => {})
      if (!callable(test[name])) continue
      test.on('result', (result) => {
        if (!result.ok) failed = true
      })
      if (!fails(TAPE[name], test) && !failed) note('tape ' + name)
    }
  }
}

/** expect() counts its calls for expect.assertions(); canaries do not count. */
function uncounted(expect, getState, setState, work) {
  let state
  try {
    state = { ...apply(getState, expect, []) }
  } catch {}
  work()
  if (state === undefined) return
  const { assertionCalls, numPassingAsserts } = state
  try {
    const count = { assertionCalls }
    if (numPassingAsserts !== undefined) count.numPassingAsserts = numPassingAsserts
    apply(setState, expect, [count])
  } catch {}
}

/** What of the language tests and runners are built on, in one realm. */
const languageOf = ({ Array, Function, JSON, Map, Math, Number, Object, Promise, Reflect, RegExp,
  Set, String }) => ({
  Array, JSON, Math, Number, Object, Promise, Reflect,
  'Array.prototype': Array.prototype,
  'Function.prototype': Function.prototype,
  'Map.prototype': Map.prototype,
  'Number.prototype': Number.prototype,
  'Object.prototype': Object.prototype,
  'Promise.prototype': Promise.prototype,
  'RegExp.prototype': RegExp.prototype,
  'Set.prototype': Set.prototype,
  'String.prototype': String.prototype,
})
const { performance: clock } = globalThis
const MAX_TOLD = 100

const inside = (file) => relative(ROOT, file)

/** What was done by whom, and functions of which it is still to be found out where they stand. */
const newDeeds = () => ({ told: [], whats: [], values: [] })
const ofAll = newDeeds()
/** Functions of packages and of Node: to find out where one stands takes tens of milliseconds. */
const foreign = new SetOf()

/** Notes the file that does something now, or in which what it passes stands. */
function noteDeed(deeds, what, value) {
  const { file } = caller(null)
  const { told, values, whats } = deeds
  if (file !== null) define(told, [what, inside(file)])
  else if (callable(value)) {
    define(whats, what)
    define(values, value)
  }
}

/** Adds to a list, whatever was put on the prototype of lists. */
function define(list, value) {
  if (list.length >= MAX_TOLD) return
  defineProperty(list, list.length, { value, enumerable: true })
}

// Whoever loads modules in another way.
for (const name of ['register', 'registerHooks']) {
  const own = Module[name]
  if (own === undefined) continue
  Module[name] = function (...rest) {
    noteDeed(ofAll, 'Module.' + name, rest[0])
    return apply(own, this, rest)
  }
}
Module.syncBuiltinESMExports()

const ofProcess = keep({
  ...languageOf(globalThis),
  globalThis,
  Date,
  process,
  'process.hrtime': process.hrtime,
  Module,
  'Module.prototype': Module.prototype,
  child_process: require('node:child_process'),
  fs,
  'fs.promises': fs.promises,
  'EventEmitter.prototype': EventEmitter.prototype,
  vm: require('node:vm'),
}, { 'Module._extensions': Module._extensions, performance })

let count = 0

/** Begins to watch the assertions of one file of tests, or of a process; null for no name. */
exports.watch = (file, scope = globalThis) => {
  const subject = file === null ? '*' : isAbsolute(file) ? relative(ROOT, file) : file
  const path = HERE + '/canaries/' + now() + '-' + PID + '-' + count++
  const write = (end, ...line) => {
    const fd = openSync(path + end, 'a', 0o600)
    writeSync(fd, stringify([NONCE, ...line]) + '\n')
    closeSync(fd)
  }
  // The file as it was written here.
  let written
  const isOther = () => {
    try {
      const { ctimeNs, ino, size } = lstatSync(path + '.jsonl', { bigint: true })
      return ctimeNs !== written.ctimeNs || ino !== written.ino || size !== written.size
    } catch {
      return true
    }
  }
  const add = (...line) => {
    if (written !== undefined && isOther()) write('-changed.jsonl', 'changed', subject)
    else write('.jsonl', ...line)
    written = lstatSync(path + '.jsonl', { bigint: true })
  }
  const deeds = newDeeds()
  const kept = [ofProcess]
  if (scope !== globalThis) kept[1] = keep(languageOf(scope))
  /** Pairs of what was done and the file that did it; null for one that nobody knows. */
  const done = () => {
    const all = []
    const unknown = newDeeds()
    const ask = (what, value) => {
      if (apply(has, foreign, [value])) return
      define(unknown.whats, what)
      define(unknown.values, value)
    }
    const add = ({ told, values, whats }) => {
      for (let i = 0; i < told.length; i++) define(all, told[i])
      for (let i = 0; i < whats.length; i++) ask(whats[i], values[i])
    }
    add(ofAll)
    add(deeds)
    for (let i = 0; i < kept.length; i++) {
      const replaced = kept[i]()
      for (let j = 0; j < replaced.length; j++) ask(replaced[j].what, replaced[j].value)
    }
    if (globalThis.performance !== clock) ask('performance', globalThis.performance?.now)
    const files = filesOf(unknown.values)
    for (let i = 0; i < unknown.whats.length; i++) {
      if (files[i] === '') apply(addTo, foreign, [unknown.values[i]])
      else define(all, [unknown.whats[i], files[i] ? inside(files[i]) : null])
    }
    return all
  }
  const broken = []
  const seen = new SetOf()
  const note = (name) => {
    if (apply(has, seen, [name])) return
    apply(addTo, seen, [name])
    defineProperty(broken, broken.length, { value: name, enumerable: true })
  }
  let ended = false
  add('begin', subject)
  return {
    note,
    /** Notes who registers or changes something now, by the stack or by the given function. */
    deed: (what, value) => noteDeed(deeds, what, value),
    /** Also watches the functions that keep() has listed. */
    also: (replaced) => define(kept, replaced),
    assertions() {
      checkBuiltIn(note)
      for (let i = 0; i < OWN.length; i++) checkAssert(note, OWN[i])
      const given = required('assert')
      // Another object is a mock, or an assertion library that stands in for Node's.
      const isOther = callable(given) && given !== assert
      if (isOther && !fails(ASSERTIONS.ok, given)) note("require('assert')")
      checkChai(note)
      checkTape(note)
    },
    /** expect and its methods are those of the start; the global one may have been replaced. */
    expectations(expect, getState, setState) {
      uncounted(expect, getState, setState, () => {
        for (let i = 0; i < EXPECTED.length; i++) {
          if (!fails(EXPECTATIONS[EXPECTED[i]], expect)) note('expect ' + EXPECTED[i])
        }
      })
    },
    /** May be called again, to see whether somebody else has written since. */
    end(seen = null) {
      if (!ended) add('end', subject, broken, seen, done())
      else if (isOther()) write('-changed.jsonl', 'changed', subject)
      ended = true
    },
  }
}

exports.keep = keep

/** Notes who changes these properties of a test after it was declared. */
exports.guard = (canaries, test, names) => {
  for (let i = 0; i < names.length; i++) {
    let value = test[names[i]]
    defineProperty(test, names[i], {
      enumerable: true,
      get: () => value,
      set: (next) => {
        if (next !== value && next !== undefined) canaries.deed(names[i] + ' of a test', next)
        value = next
      },
    })
  }
}

const DECLARATIONS = ['it', 'test', 'describe', 'specify', 'context', 'suite']

/** Functions with which tests are declared, as they are now. */
exports.declarations = (scope) => {
  const kept = {}
  for (const name of DECLARATIONS) {
    const value = describe(scope, name)?.value
    if (callable(value)) kept[name] = value
  }
  return kept
}

/** The names of those that were replaced since. */
exports.replaced = (scope, kept) => keys(kept).filter((name) => scope[name] !== kept[name])
`
