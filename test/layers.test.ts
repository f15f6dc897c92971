/**
 * The direction of imports in `lib`, types included: between modules, and between the folders of a
 * module.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { boxes } from './architecture/boxes.js'
import { root } from './helpers/markdown.js'
import {
  findCycle,
  graph,
  imports,
  sourceFiles,
  type Import,
  type ImportGraph,
} from './helpers/imports.js'

const inside = imports.filter(({ target }) => target.endsWith('.ts'))

/** The module of a path under lib: its first folder, or 'root' for lib/index.ts. */
const moduleOf = (path: string): string => (path.includes('/') ? path.split('/')[0]! : 'root')

/** The folder of a path within its module; '' for the files in the module's root. */
const folderOf = (path: string): string => path.split('/').slice(1, -1)[0] ?? ''

function assertNone(wrong: readonly Import[]): void {
  assert.deepEqual(wrong.map(({ from, target }) => `${from} imports ${target}`), [])
}

/** May a file of one module import a file of another? */
function mayImport(from: string, target: string): boolean {
  const [source, goal] = [moduleOf(from), moduleOf(target)]
  if (source === goal) return true
  // The program `runwright` is on top.
  if (goal === 'cli') return false
  if (source === 'root') return true
  if (source === 'internal') return false
  if (goal === 'internal') return true
  if (source === 'agent' && goal === 'http') {
    return from.startsWith('agent/models/') || from.startsWith('agent/mcp/')
  }
  if (source === 'cli') return ['server', 'agent', 'repair'].includes(goal)
  if (source === 'repair') return goal === 'agent'
  return source === 'server' && ['http', 'ws', 'agent'].includes(goal)
}

test('lib imports nothing but node: modules and its own files', () => {
  assertNone(
    imports.filter(({ target }) => !target.startsWith('node:') && !target.endsWith('.ts')),
  )
})

test('modules are imported in one direction only: cli over server over agent, ws, http', () => {
  assertNone(inside.filter(({ from, target }) => !mayImport(from, target)))
})

test('one module reaches another through its index only', () => {
  assertNone(
    inside.filter(({ from, target }) => {
      const [source, goal] = [moduleOf(from), moduleOf(target)]
      return source !== goal && goal !== 'internal' && target !== `${goal}/index.ts`
    }),
  )
})

test('no file under lib takes part in an import cycle, types included', () => {
  assert.deepEqual(findCycle(graph), null)
})

test('a cycle is found, also one of three files', () => {
  const ring: ImportGraph = new Map([['a', ['b']], ['b', ['c']], ['c', ['a']], ['d', ['a']]])
  assert.deepEqual(findCycle(ring), ['a', 'b', 'c', 'a'])
})

/** What the folders of agent may import besides themselves and the contracts. */
const agentFolders: Readonly<Record<string, readonly string[]>> = {
  checkpoints: ['log', 'redaction', 'request', 'workspace'],
  copies: ['tools', 'workspace'],
  conversation: [],
  executors: [],
  goals: ['redaction', 'workspace'],
  isolation: ['workspace'],
  'json-schema': ['redaction'],
  log: ['conversation', 'redaction'],
  mcp: ['executors', 'redaction'],
  models: ['conversation', 'redaction'],
  redaction: [],
  request: ['goals', 'log', 'models', 'redaction', 'tools', 'tracing', 'workspace'],
  run: [
    'checkpoints',
    'conversation',
    'copies',
    'goals',
    'isolation',
    'log',
    'models',
    'redaction',
    'request',
    'tools',
    'tracing',
    'workspace',
  ],
  stores: ['log'],
  // On top: nothing in agent imports it.
  testing: ['', 'log', 'models'],
  tools: ['redaction', 'workspace'],
  tracing: ['redaction'],
  workspace: ['redaction'],
}

const contracts = new Set(boxes.find(({ id }) => id === 'contracts')?.holds)

test('the contracts of agent import only each other', () => {
  assertNone(
    inside.filter(({ from, target }) => {
      // What cuts or quotes a text redacts it first.
      const quotes = ['agent/output.ts', 'agent/json-schema/describe.ts']
      if (quotes.includes(from) && target === 'agent/redaction/redactor.ts') return false
      return contracts.has(from) && moduleOf(target) === 'agent' && !contracts.has(target)
    }),
  )
})

test('folders of agent import only the contracts and the folders listed for them', () => {
  assertNone(
    inside.filter(({ from, target }) => {
      const [source, goal] = [folderOf(from), folderOf(target)]
      if (moduleOf(from) !== 'agent' || moduleOf(target) !== 'agent' || source === '') return false
      if (source === goal || contracts.has(target)) return false
      return !(agentFolders[source] ?? []).includes(goal)
    }),
  )
})

test('every folder of agent has its place in that order', () => {
  const folders = new Set(sourceFiles.filter((it) => moduleOf(it) === 'agent').map(folderOf))
  folders.delete('')
  assert.deepEqual([...folders].sort(), Object.keys(agentFolders).sort())
})

/** Files of http's root that decide what is sent, in which order, and again: what clients share. */
const brain = new Set(
  [
    'api',
    'async-client',
    'build-request',
    'call-options',
    'client',
    'client-transports',
    'event-source',
    'exchange',
    'hooks',
    'index',
    'options',
    'pagination',
    'redirects',
  ].map((name) => `http/${name}.ts`),
)

test('in http, content, auth, cookies and transports know nothing of the clients', () => {
  for (const file of brain) assert.ok(sourceFiles.includes(file), `there is no lib/${file}`)
  assertNone(
    inside.filter(({ from, target }) => {
      return moduleOf(from) === 'http' && folderOf(from) !== '' && brain.has(target)
    }),
  )
})

test('in http, content, auth and cookies know nothing of transports', () => {
  assertNone(
    inside.filter(({ from, target }) => {
      return /^http\/(content|auth|cookies)\//.test(from) && target.startsWith('http/transports/')
    }),
  )
})

test('HTTP/1.1, HTTP/2 and proxies know nothing of each other, nor of the blocking client', () => {
  const room = (path: string): string => /^http\/transports\/(\w+)\//.exec(path)?.[1] ?? ''
  assertNone(
    inside.filter(({ from, target }) => {
      const [source, goal] = [room(from), room(target)]
      return source !== '' && source !== 'blocking' && goal !== '' && source !== goal
    }),
  )
})

/** Folders of server from the bottom up: each may import those before it, and files of the root. */
const serverFolders = [
  'messages',
  'access',
  'describe',
  'webhooks',
  'streams',
  'monitoring',
  'dashboard',
  'routes',
  'client',
]

test('folders of server import only those below them', () => {
  const level = (path: string): number => serverFolders.indexOf(folderOf(path))
  assertNone(
    inside.filter(({ from, target }) => {
      if (moduleOf(from) !== 'server' || moduleOf(target) !== 'server') return false
      return level(from) !== -1 && level(target) > level(from)
    }),
  )
})

test('a folder with an index is imported from outside through it', () => {
  assertNone(
    inside.filter(({ from, target }) => {
      const folder = dirname(target)
      if (basename(target) === 'index.ts' || from.startsWith(`${folder}/`)) return false
      if (moduleOf(from) !== moduleOf(target) || !folder.includes('/')) return false
      return existsSync(join(root, 'lib', folder, 'index.ts'))
    }),
  )
})

test('nothing but the program imports the repair engine', () => {
  const importing = inside.filter(({ target }) => moduleOf(target) === 'repair')
  assert.deepEqual([...new Set(importing.map(({ from }) => moduleOf(from)))].sort(), [
    'cli', 'repair',
  ])
})

test('the layer check reads the files that are there', () => {
  assert.ok(imports.length > 1000, `only ${imports.length} imports were found`)
  assert.ok(readFileSync(join(root, 'lib/agent/index.ts'), 'utf8').length > 0)
})
