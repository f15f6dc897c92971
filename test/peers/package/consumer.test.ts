import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { pairs } from '../../helpers/choice.js'
import { packInto } from './tarball.js'

// The packed package in a project of its own: compiled, required, bundled, and checked by tools.

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const bin = join(root, 'test/peers/node_modules/.bin')
const folder = mkdtempSync(join(tmpdir(), 'runwright-consumer-'))
let tarball = ''

before(async () => {
  tarball = await packInto(folder)
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'runwright'), { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', join(modules, 'runwright'), '--strip-components=1'])
  mkdirSync(join(modules, '@types'))
  symlinkSync(join(root, 'node_modules/@types/node'), join(modules, '@types/node'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}')
  writeFileSync(join(folder, 'use.ts'), PROGRAM)
})

after(() => rmSync(folder, { recursive: true, force: true }))

const PROGRAM = `
import { agent, http, server, ws } from 'runwright'
import { AsyncClient, Client, MockTransport, Response } from 'runwright/http'
import { MemoryStore, RunEngine } from 'runwright/agent'
import { ManualClock, ScriptedModel } from 'runwright/agent/testing'
import { createRunService } from 'runwright/server'
import { WebSocketServer } from 'runwright/ws'

const transport = new MockTransport(() => new Response(200, { json: { ok: true } }))
const client = new AsyncClient({ transport })
const answer = await client.get('http://a.test/')
const status: number = answer.statusCode
const code: 'no number' extends typeof answer.statusCode ? never : number = status
// @ts-expect-error a response has no such field
void answer.noSuchField
await client.close()
const all: readonly unknown[] = [
  Client, MemoryStore, RunEngine, ManualClock, ScriptedModel, createRunService, WebSocketServer,
  agent.RunEngine, http.AsyncClient, server.createRunService, ws.WebSocketServer,
]
const same = agent.RunEngine === RunEngine && http.Client === Client
if (!same) throw new Error('there are two of one class')
console.log(code, all.every((one) => typeof one === 'function'), JSON.stringify(answer.json()))
`

const SETTINGS = [
  { module: 'node16', moduleResolution: 'node16' },
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'esnext', moduleResolution: 'bundler' },
]
/** The oldest version that README.md promises, and that of the project. */
const COMPILERS = {
  '5.6': join(root, 'test/peers/node_modules/typescript-oldest/bin/tsc'),
  '6.0': join(root, 'node_modules/typescript/bin/tsc'),
}
for (const [[version, tsc], { module, moduleResolution }] of pairs(
  Object.entries(COMPILERS),
  SETTINGS,
)) {
  const how = `--strict, moduleResolution ${moduleResolution}, TypeScript ${version}`
  test(`the declarations compile under ${how}`, async () => {
    const options = [
      '--strict',
      '--skipLibCheck',
      'false',
      '--exactOptionalPropertyTypes',
      '--target',
      'es2022',
    ]
    const lib = [
      '--lib',
      'es2023,esnext.disposable',
      '--types',
      'node',
      '--outDir',
      moduleResolution,
    ]
    const modes = ['--module', module, '--moduleResolution', moduleResolution]
    const ignored = version === '5.6' ? [] : ['--ignoreConfig']
    const words = [tsc, 'use.ts', ...ignored, ...options, ...lib, ...modes]
    const { stdout } = await run(process.execPath, words, { cwd: folder }).catch((error) => error)
    assert.equal(stdout, '')
    const told = await run(process.execPath, [join(moduleResolution, 'use.js')], { cwd: folder })
    assert.equal(told.stdout, '200 true {"ok":true}\n')
  })
}

test('CommonJS requires every entry where Node allows it', async () => {
  const entries = ['', '/http', '/ws', '/agent', '/agent/testing', '/server'].map(
    (path) => `runwright${path}`,
  )
  const code = `for (const name of ${JSON.stringify(entries)}) console.log(Object.keys(require(name)).length > 0)`
  const { stdout } = await run(process.execPath, ['--no-warnings', '-e', code], { cwd: folder })
  assert.deepEqual(stdout.trim().split('\n'), entries.map(() => 'true'))
})

test('esbuild bundles a program that uses every entry, and the bundle runs', async () => {
  const words = [
    'use.ts',
    '--bundle',
    '--platform=node',
    '--format=esm',
    '--outfile=bundle.mjs',
    '--log-level=warning',
  ]
  const built = await run(join(bin, 'esbuild'), words, { cwd: folder })
  assert.equal(built.stderr, '')
  const alone = mkdtempSync(join(dirname(folder), 'runwright-bundle-'))
  try {
    symlinkSync(join(folder, 'bundle.mjs'), join(alone, 'bundle.mjs'))
    const { stdout } = await run(process.execPath, ['--preserve-symlinks-main', 'bundle.mjs'], {
      cwd: alone,
    })
    assert.equal(stdout, '200 true {"ok":true}\n')
  } finally {
    rmSync(alone, { recursive: true, force: true })
  }
})

test('publint has nothing to say', async () => {
  const { stdout } = await run(join(bin, 'publint'), [tarball, '--strict'], { cwd: folder }).catch(
    (error) => error,
  )
  assert.match(stdout, /All good/)
})

test('@arethetypeswrong/cli finds no problem', async () => {
  const words = [tarball, '--profile', 'esm-only', '--no-emoji', '--no-color']
  // It ends with 1 when it finds one. What is ESM alone has no other reader to please.
  const { stdout } = await run(join(bin, 'attw'), words, { cwd: folder })
  assert.match(stdout, /OK \(ESM\)/)
})
