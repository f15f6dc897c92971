/**
 * Packs the package, installs the tarball in an empty folder and uses it there: imports every
 * export, makes HTTP calls with both clients, completes a run, and plays the commands of `npx
 * runwright` in an empty folder. Uses this Node, and those whose binaries are given: `node test/pack.mjs [binary]…`.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { esbuild } from '../build.mjs'

/** Of the tarball. */
const MAX_PACKED_BYTES = 1_600_000
/** Printed, not checked: the median of five processes, less that of an empty one. */
const IMPORT_TIMES = `
  const { spawnSync } = require('node:child_process')
  const median = (code) => Array.from({ length: 5 }, () => {
    const began = performance.now()
    spawnSync(process.execPath, ['--input-type=module', '-e', code])
    return performance.now() - began
  }).sort((a, b) => a - b)[2]
  const bare = median('')
  const added = (name) => (median('import "runwright/' + name + '"') - bare).toFixed(0) + ' ms'
  const names = ['http', 'ws', 'agent', 'server']
  'Node ' + process.version + ': ' +
    names.map((name) => 'runwright/' + name + ' +' + added(name)).join(', ')`

/** Errors from all parts, as their stacks. */
const TRACES = `
import { MemoryStore, RunEngine } from 'runwright/agent'
import { AsyncClient, Client } from 'runwright/http'
import { createRunService } from 'runwright/server'
import { WebSocketServer } from 'runwright/ws'
Error.stackTraceLimit = 50
const engine = { store: new MemoryStore(), roots: [process.cwd()] }
const closed = 'http://127.0.0.1:1/'
const failures = {
  'http, an option': () => new AsyncClient({ nope: 1 }),
  'http, a socket': () => new AsyncClient({ trustEnv: false }).get(closed),
  'http, blocking': () => new Client({ trustEnv: false }).get(closed),
  'ws, an option': () => new WebSocketServer({ nope: 1 }),
  'agent, an option': () => RunEngine.open({ ...engine, defaultModel: 'nope' }),
  'agent, a run': async () => {
    const running = await RunEngine.open(engine)
    await running.create({ goal: 'nope' }).finally(() => running.close())
  },
  'server, a folder': () => createRunService({ engine: { ...engine, roots: ['/nope'] } }),
  'server, an option': () => createRunService({ engine, nope: 1 }),
}
const stacks = {}
for (const [name, fail] of Object.entries(failures)) {
  try {
    await fail()
    throw new Error(name + ' does not fail')
  } catch (error) {
    stacks[name] = error.stack
  }
}
console.log(JSON.stringify(stacks))
process.exit()
`

/** What the stacks of some of them contain: methods, classes, and functions that are not public. */
const NAMES_IN_TRACES = {
  'http, an option': ['at checkOptions (', 'at new AsyncClient ('],
  'agent, an option': ['RunEngine.open ('],
  'agent, a run': ['RunEngine.create ('],
  'server, an option': ['createRunService ('],
}

/** One test for each language of the programs that reports on tests are made by. */
const RUNNERS = {
  node: {
    file: 'one.test.mjs',
    code: "import test from 'node:test'\nimport assert from 'node:assert'\n" +
      "test('one', () => assert.equal(1, 1))\n",
    command: 'node --test one.test.mjs',
  },
  python3: {
    file: 'test_one.py',
    code: 'import unittest\nclass One(unittest.TestCase):\n' +
      '    def test_one(self): self.assertEqual(1, 1)\n',
    command: 'python3 -m unittest test_one.py',
  },
}

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folder = mkdtempSync(join(tmpdir(), 'runwright-pack-'))
const npm = (/** @type {string[]} */ ...args) =>
  execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })

try {
  const [packed] = JSON.parse(npm('pack', root, '--json', '--ignore-scripts', '--loglevel=error'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}')
  npm('install', `./${packed.filename}`, '--no-audit', '--no-fund', '--loglevel=error')
  const installed = readdirSync(join(folder, 'node_modules')).filter(
    (name) => !name.startsWith('.'),
  )
  if (installed.join() !== 'runwright') {
    throw new Error(`more than runwright was installed: ${installed}`)
  }
  const expected = /^(dist|docs|examples)\/|^(package\.json|LICENSE|(README|CHANGELOG|CONTRIBUTING)\.md)$/
  const paths = packed.files.map((/** @type {{path: string}} */ { path }) => path)
  const stray = paths.filter((/** @type {string} */ path) => !expected.test(path))
  if (stray.length > 0) throw new Error(`the tarball has ${stray}`)
  checkLinks(join(folder, 'node_modules/runwright'), paths)
  // A bundle has no file beside it, and no loader of TypeScript.
  for (const path of paths.filter((/** @type {string} */ name) => /^dist.*js$/.test(name))) {
    const code = readFileSync(join(folder, 'node_modules/runwright', path), 'utf8')
    // The reporter for node:test, which is text, asks where it is.
    // The program, which nobody bundles, copies its demo from the examples.
    const isProgram = path.startsWith('dist/chunks/program-')
    const rule = isProgram ? /tsx\// : /(?<!fileURLToPath\()import\.meta\.|tsx\//
    const own = rule.exec(code)
    if (own !== null) throw new Error(`${path} has ${own[0]}`)
  }
  const specifiers = Object.keys(
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports,
  )
    .filter((path) => path !== './package.json')
    .map((path) => `runwright${path.slice(1)}`)
  writeFileSync(join(folder, 'use.mjs'), program(specifiers))
  for (const node of [process.execPath, ...process.argv.slice(2)]) {
    if (isOld(node)) {
      checkRefusals(node, specifiers)
      continue
    }
    execFileSync(node, ['use.mjs'], { cwd: folder, stdio: 'inherit', timeout: 60_000 })
    await useCommands(node)
    checkTraces(node)
    console.log(
      execFileSync(node, ['--print', IMPORT_TIMES], { cwd: folder, encoding: 'utf8' }).trim(),
    )
  }
  for (const specifier of specifiers) console.log(await bundledSize(specifier))
  const { entryCount, unpackedSize } = packed
  const { size } = statSync(join(folder, packed.filename))
  console.log(`packed: ${entryCount} files, ${unpackedSize} bytes unpacked, ${size} packed`)
  if (size > MAX_PACKED_BYTES) {
    throw new Error(`the tarball has ${size} bytes, more than ${MAX_PACKED_BYTES}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/**
 * Each relative link of a document leads to a file or a folder that is shipped as well.
 *
 * @param {string} installed
 * @param {readonly string[]} paths
 */
function checkLinks(installed, paths) {
  const isShipped = (/** @type {string} */ goal) =>
    paths.some((path) => path === goal || path.startsWith(`${goal}/`))
  let count = 0
  for (const path of paths.filter((name) => name.endsWith('.md'))) {
    const text = readFileSync(join(installed, path), 'utf8').replaceAll(/(`+).*?\1/g, '')
    for (const [, link = ''] of text.matchAll(/\]\(\s*<?([^)\s>#]+)[^)]*\)/g)) {
      if (/^[a-z][a-z0-9+.-]*:/.test(link)) continue
      count++
      if (!isShipped(join(dirname(path), link))) throw new Error(`${path} links to ${link}`)
    }
  }
  if (count < 100) throw new Error(`only ${count} relative links were found`)
  console.log(`all ${count} relative links of the documents lead to what is shipped`)
}

/**
 * The size of a program that imports all of an entry point, as a user's bundler makes it.
 *
 * @param {string} specifier
 */
async function bundledSize(specifier) {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: `export * from '${specifier}'`, resolveDir: folder },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
  })
  const [{ contents }] = outputFiles
  return `${specifier}: ${contents.length} bytes minified, ${gzipSync(contents).length} gzipped`
}

/**
 * Without any flag, stack traces show the names of the sources.
 *
 * @param {string} node
 */
function checkTraces(node) {
  writeFileSync(join(folder, 'traces.mjs'), TRACES)
  const options = /** @type {const} */ ({ cwd: folder, encoding: 'utf8', timeout: 60_000 })
  const stacks = JSON.parse(execFileSync(node, ['traces.mjs'], options))
  for (const [name, stack] of Object.entries(stacks)) {
    const frames = [...stack.matchAll(/runwright\/(dist\/[\w/.-]+\.js):\d+:\d+/g)]
    if (frames.length < 2) throw new Error(`${name}: too few frames of the package in ${stack}`)
    for (const known of NAMES_IN_TRACES[name] ?? []) {
      if (!stack.includes(known)) throw new Error(`${name}: a trace has no ${known}: ${stack}`)
    }
  }
  console.log(`a stack trace of the package:\n${stacks['agent, an option']}`)
}

/** @param {string} node */
function isOld(node) {
  return Number(execFileSync(node, ['--print', 'parseInt(process.versions.node)'])) < 20
}

/**
 * An old Node is told which one is needed: by the program, and by each import that it can read.
 *
 * @param {string} node
 * @param {string[]} specifiers
 */
function checkRefusals(node, specifiers) {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const told = `runwright needs Node ${engines.node.slice(2)} or newer; this is ${version}`
  const bin = join(folder, 'node_modules/runwright/dist/cli/main.js')
  const options = /** @type {const} */ ({ cwd: folder, encoding: 'utf8' })
  const { status, stderr } = spawnSync(node, [bin, '--help'], options)
  if (status !== 1 || stderr !== `${told}\n`) throw new Error(`${version}: it says ${stderr}`)
  const isReadable = Number.parseInt(version.slice(1)) >= 16
  for (const specifier of isReadable ? specifiers : []) {
    const args = ['--input-type=module', '-e', `import '${specifier}'`]
    const failed = spawnSync(node, args, options)
    if (!failed.stderr.includes(`\nError: ${told}\n`))
      throw new Error(`${version}: import of ${specifier} says ${failed.stderr}`)
  }
  console.log(`Node ${version}: ${told}`)
}

/** @param {string} node */
async function useCommands(node) {
  const cwd = mkdtempSync(join(folder, 'empty-'))
  const bin = join(folder, 'node_modules/.bin/runwright')
  /** @type {import('node:child_process').ExecFileSyncOptionsWithStringEncoding} */
  const options = {
    cwd,
    env: { ...process.env, XDG_STATE_HOME: join(cwd, 'state') },
    encoding: 'utf8',
    timeout: 60_000,
  }
  const help = execFileSync('npx', ['runwright', '--help'], options)
  if (!help.includes('Usage: runwright')) throw new Error(`npx runwright --help says ${help}`)
  const said = execFileSync(node, [bin, 'run', 'shell: true'], options)
  if (!/^achieved after /m.test(said)) throw new Error(`runwright run says ${said}`)
  for (const [program, { file, code, command }] of Object.entries(RUNNERS)) {
    if (spawnSync(program, ['--version']).status !== 0) continue
    writeFileSync(join(cwd, file), code)
    const told = execFileSync(node, [bin, 'run', `shell: ${command}`], options)
    if (!/^achieved after .*the only test passes/m.test(told)) {
      throw new Error(`runwright run of ${command} says ${told}`)
    }
  }
  const server = spawn(node, [bin, '--port', '0'], { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  const [chunk] = await once(server.stdout, 'data')
  const [, url] = /^runwright listening on (\S+)\n/.exec(String(chunk)) ?? []
  const { status } = await fetch(`${url}/api/health`)
  const demo = await fetch(`${url}/api/demo`, { method: 'POST' })
  server.kill('SIGINT')
  const [code] = await once(server, 'exit')
  if (status !== 200 || code !== 0) throw new Error(`health ${status}, exit code ${code}`)
  if (demo.status !== 201) throw new Error(`no demo in the package: ${await demo.text()}`)
  console.log(`Node ${execFileSync(node, ['--version'], options).trim()}: npx runwright works`)
}

/** @param {string[]} specifiers */
function program(specifiers) {
  return `
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
for (const specifier of ${JSON.stringify(specifiers)}) {
  const names = Object.entries(await import(specifier))
  assert.ok(names.length > 0, specifier)
  // Classes have their original names, which stack traces and the console show.
  for (const [name, value] of names) {
    if (/^[A-Z]/.test(value.name ?? '')) assert.equal(value.name, name)
    assert.doesNotMatch(String(value.name ?? ''), /^_/, name)
  }
}
const { AsyncClient, Client } = await import('runwright/http')
const { FileStore } = await import('runwright/agent')
const { repairModel } = await import('runwright/repair')
const { createRunService } = await import('runwright/server')
const project = mkdtempSync('project-')
const service = await createRunService({
  engine: {
    store: new FileStore({ directory: project + '-data' }), roots: [project],
    providers: [repairModel()], defaultModel: 'builtin:repair',
  },
})
const server = createServer(service.handler)
service.attach(server)
await new Promise((done) => server.listen(0, '127.0.0.1', done))
const baseUrl = 'http://127.0.0.1:' + server.address().port
const client = new AsyncClient({ baseUrl, trustEnv: false })
const created = await client.post('/api/runs', { json: { goal: 'shell: true' } })
assert.equal(created.statusCode, 201)
const id = created.json().run_id
const headers = { accept: 'text/event-stream' }
const events = await client.get('/api/runs/' + id + '/events', { headers })
assert.match(events.text, /"kind":"run_end"/)
assert.equal((await client.get('/api/runs/' + id)).json().status, 'achieved')
const page = await client.get('/')
assert.equal(page.statusCode, 200)
assert.match(page.text, /<html/i)
const blocking = \`
  const { parentPort, workerData } = require('node:worker_threads')
  import('runwright/http').then(({ Client }) => {
    const client = new Client({ baseUrl: workerData, trustEnv: false })
    parentPort.postMessage(client.get('/api/health').json().status)
  })\`
const worker = new Worker(blocking, { eval: true, workerData: baseUrl })
const [status] = await once(worker, 'message')
assert.equal(status, 'ok')
await worker.terminate()
assert.throws(() => new Client({ timeout: 100, trustEnv: false }).get(baseUrl), {
  code: 'ERR_HTTP_READ_TIMEOUT',
})
await client.close()
await service.close()
server.close()
console.log('Node ' + process.version + ': the installed package works')
`
}

