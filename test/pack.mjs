/**
 * Packs the package, installs the tarball in an empty folder and uses it there: imports every
 * export, makes HTTP calls with both clients, completes a run, and plays the commands of `npx
 * runwright` in an empty folder. Uses this Node, and those whose binaries are given: `node test/pack.mjs [binary]…`.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The worker of `Client` is a script of its own in there, of 0.08 MB. */
const MAX_MEGABYTES = 3.1
const MAX_FILES = 260
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
  const expected = /^(dist\/|package\.json$|README\.md$|LICENSE$|CHANGELOG\.md$)/
  const paths = packed.files.map((/** @type {{path: string}} */ { path }) => path)
  const stray = paths.filter((/** @type {string} */ path) => !expected.test(path))
  if (stray.length > 0) throw new Error(`the tarball has ${stray}`)
  // A bundle has no file beside it, and no loader of TypeScript.
  for (const path of paths.filter((/** @type {string} */ name) => name.endsWith('.js'))) {
    const code = readFileSync(join(folder, 'node_modules/runwright', path), 'utf8')
    // The reporter for node:test, which is text, asks where it is.
    const own = /(?<!fileURLToPath\()import\.meta\.|tsx\//.exec(code)
    if (own !== null) throw new Error(`${path} has ${own[0]}`)
  }
  const specifiers = Object.keys(
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports,
  )
    .filter((path) => path !== './package.json')
    .map((path) => `runwright${path.slice(1)}`)
  writeFileSync(join(folder, 'use.mjs'), program(specifiers))
  for (const node of [process.execPath, ...process.argv.slice(2)]) {
    execFileSync(node, ['use.mjs'], { cwd: folder, stdio: 'inherit', timeout: 60_000 })
    await useCommands(node)
    console.log(
      execFileSync(node, ['--print', IMPORT_TIMES], { cwd: folder, encoding: 'utf8' }).trim(),
    )
  }
  const size = packed.unpackedSize / 1e6
  const { size: bytes } = statSync(join(folder, packed.filename))
  console.log(
    `packed: ${packed.entryCount} files, ${size.toFixed(2)} MB unpacked, ${bytes} bytes`,
  )
  if (size > MAX_MEGABYTES) {
    throw new Error(`unpacked, the package has more than ${MAX_MEGABYTES} MB`)
  }
  if (packed.entryCount > MAX_FILES) throw new Error(`the package has more than ${MAX_FILES} files`)
} finally {
  rmSync(folder, { recursive: true, force: true })
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
  const server = spawn(node, [bin, '--port', '0'], { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  const [chunk] = await once(server.stdout, 'data')
  const [, url] = /^runwright listening on (\S+)\n/.exec(String(chunk)) ?? []
  const { status } = await fetch(`${url}/api/health`)
  server.kill('SIGINT')
  const [code] = await once(server, 'exit')
  if (status !== 200 || code !== 0) throw new Error(`health ${status}, exit code ${code}`)
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
const { createRunService } = await import('runwright/server')
const project = mkdtempSync('project-')
const service = await createRunService({
  engine: { store: new FileStore({ directory: project + '-data' }), roots: [project] },
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
