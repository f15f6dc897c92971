import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { signatures } from './signature.js'

type Files = Readonly<Record<string, string>>

const base: Files = {
  'index.ts': `
    export { Engine, type EngineOptions } from './engine.js'
    export { LEVELS, read, read as load } from './read.js'
    export type { Level } from './read.js'
    export type { Store } from './store.js'`,
  'engine.ts': `
    import type { Server } from 'node:http'
    import type { Limits } from './limits.js'
    import { Store } from './store.js'
    export interface EngineOptions { readonly limits?: Limits; readonly store?: Store | Response }
    export class Engine<T = string> {
      #state = 0
      private readonly name: string = 'engine'
      protected readonly server: Server | null = null
      constructor(options?: EngineOptions) {}
      get isOpen(): boolean { return this.#state > this.name.length }
      run(goal: string, value: T): void {}
    }
    declare module './quota.js' { interface Options { readonly perWeek?: number } }`,
  'limits.ts': `
    import type { Server as SecureServer } from 'node:https'
    import { KEY, type Options } from './quota.js'
    export interface Limits { readonly quota?: Options; readonly [KEY]: SecureServer | Response }
    export interface Response { readonly "status": number }`,
  'quota.ts': `
    export const KEY: unique symbol = Symbol('key')
    export interface Options { readonly perDay?: number }`,
  'read.ts': `
    import type { Options } from './read-options.js'
    export const LEVELS = { low: 1, high: 2 } as const
    export type Level = 'debug' | 'info' | 'error'
    export function read(path: string, options?: Options): string
    export function read(path: URL): string
    export function read(path: string | URL): string { return String(path) }
    declare module './quota.js' { interface Options { readonly perHour?: number } }`,
  'read-options.ts': `
    export interface Options { readonly encoding?: string }`,
  'store.ts': `
    export class Store { close(): void {} }`,
}

const expected = `import { Server } from 'node:http'
import { Server as Server_2 } from 'node:https'
export type { Store }
export { read as load }

export class Engine<T = string> {
  protected readonly server: Server | null
  constructor(options?: EngineOptions)
  get isOpen(): boolean
  run(goal: string, value: T): void
}

export interface EngineOptions {
  readonly limits?: Limits
  readonly store?: Store | globalThis.Response
}

const KEY: unique symbol

export const LEVELS: {
  readonly low: 1
  readonly high: 2
}

export type Level = 'debug' | 'info' | 'error'

interface Limits {
  readonly quota?: Options_2
  readonly [KEY]: Server_2 | Response
}

interface Options {
  readonly encoding?: string
}

interface Options_2 {
  readonly perDay?: number
}

interface Options_2 {
  readonly perHour?: number
}

interface Options_2 {
  readonly perWeek?: number
}

interface Response {
  readonly 'status': number
}

class Store {
  close(): void
}

export function read(path: string, options?: Options): string

export function read(path: URL): string
`

type Edit = readonly [file: string, from: string | RegExp, to: string]

/** Edits that callers can see. What they remove and add is that of the source, if not given. */
const changes: Readonly<Record<string, readonly [...Edit, removed?: string, added?: string]>> = {
  'an export gets another name': [
    'index.ts', 'Engine,', 'Engine as Machine,',
    'export class Engine<T = string> {', 'export { Engine as Machine }',
  ],
  'an export is removed': ['index.ts', ', read as load', '', 'export { read as load }'],
  'a class is exported as a type only': [
    'index.ts', 'Engine, type', 'type Engine, type',
    'export class Engine<T = string> {', 'export type { Engine }',
  ],
  'a parameter becomes required': [
    'engine.ts', 'constructor(options?:', 'constructor(options:',
  ],
  'an option three types deep changes': ['quota.ts', 'perDay?: number', 'perDay?: string'],
  'an augmentation changes': ['read.ts', 'perHour?: number', 'perHour?: string'],
  'a literal leaves a union': ['read.ts', "'debug' | 'info' |", "'debug' |"],
  'a constant gets another value': ['read.ts', 'high: 2', 'high: 3'],
  'an overload is removed': ['read.ts', 'export function read(path: URL): string', ''],
  'a default of a type parameter changes': ['engine.ts', 'T = string', 'T = number'],
  'a protected member changes': ['engine.ts', 'server: Server | null =', 'server: Server =',
    'protected readonly server: Server | null', 'protected readonly server: Server',
  ],
  'a global is replaced by a type of the same name': [
    'engine.ts', '{ Limits }', '{ Limits, Response }',
    'readonly store?: Store | globalThis.Response', 'readonly store?: Store | Response',
  ],
  'an import comes from another package': ['limits.ts', 'node:https', 'node:tls'],
}

/** Edits that callers can't see. */
const invisible: Readonly<Record<string, Edit>> = {
  'a comment': ['quota.ts', 'readonly', '/** Per day. */ readonly'],
  formatting: ['read.ts', "'debug' | 'info'", '\n| "debug"\n    | "info"'],
  'the order of imports': ['engine.ts', /(import.*)\n(.*)\n(.*)/, '$3\n$2\n$1'],
  'the order of exports': ['index.ts', /(.*engine.*)\n([^]*)\n(.*store.*)/, '$3\n$2\n$1'],
  'the local name of an import': ['limits.ts', /SecureServer/g, 'HttpsServer'],
  'a private member': ['engine.ts', /#state|name/g, '$&_2'],
  'a body': ['engine.ts', 'goal: string, value: T): void {', '$& throw new Error()'],
  'a helper that nothing public refers to': ['read.ts', /$/, '\nexport const HELPER = 1'],
}

function edited([file, from, to]: readonly [...Edit, ...unknown[]]): Files {
  const text = base[file]?.replace(from, to) ?? ''
  assert.notEqual(text, base[file], `${file} has no ${from}`)
  return { ...base, [file]: text }
}

const moved = Object.fromEntries(
  Object.entries(base).map(([path, text]) => [
    path.replace('read-options', 'a/options'),
    text.replace('read-options', 'a/options'),
  ]),
)

/** Returns the signatures of packages, each an entry point of one. */
function signaturesOf(packages: readonly Files[]): readonly string[] {
  const root = mkdtempSync(join(tmpdir(), 'runwright-api-'))
  try {
    const exports: Record<string, object> = {}
    for (const [index, files] of packages.entries()) {
      exports[`./${index}`] = { 'runwright-source': `./${index}/index.ts` }
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(root, `${index}`, path)), { recursive: true })
        writeFileSync(join(root, `${index}`, path), text)
      }
    }
    writeFileSync(join(root, 'package.json'), JSON.stringify({ name: 'p', exports }))
    return [...signatures(root).values()]
  } finally {
    rmSync(root, { recursive: true })
  }
}

const other: Files = {
  'index.ts': `
    import type { Store } from '../0/index.js'
    export * as all from '../0/index.js'
    export { Engine as Machine } from '../0/index.js'
    export type { Level } from '../0/index.js'
    export function open(store: Store): Store { return store }`,
}

const [signature = '', ofOther, ofMoved, ...ofEdited] = signaturesOf([
  base, other, moved,
  ...Object.values(changes).map(edited),
  ...Object.values(invisible).map(edited),
])

test('a signature has the exports and everything that they refer to', () => {
  assert.equal(signature, expected)
})

test('what another entry point exports is imported from there', () => {
  assert.equal(
    ofOther,
    `import { Store } from 'p/0'
export type { Level } from 'p/0'
export { Engine as Machine } from 'p/0'
export * as all from 'p/0'

export function open(store: Store): Store
`,
  )
})

/** Returns the lines of one text that another one hasn't. */
function without(text: string, other: string): string {
  const others = other.split('\n')
  return text.split('\n').filter((line) => !others.includes(line)).join('\n')
}

for (const [name, [, from, to, removed = from, added = to]] of Object.entries(changes)) {
  const after = ofEdited.shift() ?? ''
  test(`a signature changes when ${name}`, () => {
    assert.notEqual(after, signature)
    assert.ok(without(signature, after).includes(String(removed)))
    assert.ok(without(after, signature).includes(added))
  })
}

for (const name of Object.keys(invisible)) {
  const after = ofEdited.shift()
  test(`a signature does not depend on ${name}`, () => assert.equal(after, signature))
}

test('a signature does not depend on the file of a declaration', () => {
  assert.equal(ofMoved, signature)
})

for (const [name, text, message] of [
  ['an augmented global', 'declare global { interface Window {} }\nexport {}', /global/],
  ['an augmented package', "declare module 'node:http' { interface Server {} }\nexport {}", /http/],
  ['a namespace', "import type * as all from './all.js'\nexport type A = all.A", /all/],
  ['a type of a module', "export type A = import('./all.js').A", /all/],
  ['what has no type', 'export const a = Math.max(1, 2)', /explicit type/],
] as const) {
  test(`a signature can't have ${name}`, () => {
    const files = { 'index.ts': text, 'all.ts': 'export type A = 1' }
    assert.throws(() => signaturesOf([files]), message)
  })
}
