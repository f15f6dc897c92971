import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { transform } from '../helpers/bundle.js'

const lib = fileURLToPath(new URL('../../lib/', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'runwright-built-'))
const entry = pathToFileURL(join(folder, 'http/index.js')).href
const run = promisify(execFile)
let app: Worker
let origin = ''

// The module compiled to plain JavaScript, which needs no loader.
before(async () => {
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  for (const part of ['http', 'internal']) {
    for (const name of readdirSync(join(lib, part), { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts')) continue
      const path = join(folder, part, name.replace(/\.ts$/, '.js'))
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, transform(readFileSync(join(lib, part, name), 'utf8')))
    }
  }
  app = new Worker(new URL('../fixtures/http/app-worker.mjs', import.meta.url), { execArgv: [] })
  const [{ port }] = (await once(app, 'message')) as [{ port: number }]
  origin = `http://127.0.0.1:${port}`
})
after(async () => {
  await app.terminate()
  rmSync(folder, { recursive: true })
})

/** Code that uses a blocking client and leaves what it received in `result`. */
const use = `
  const { Client } = await import(${JSON.stringify(entry)})
  const client = new Client({ baseUrl: origin, timeout: 30_000 })
  const found = []
  found.push(client.get('/bytes?n=3').text)
  found.push(client.post('/echo', { content: ['a', 'b'].values() }).json().body)
  const response = client.stream('GET', '/encoded?coding=gzip&text=ab&times=2')
  for (const line of response.iterLines()) found.push(line)
  try {
    client.get('/never', { timeout: { read: 50 } })
  } catch (error) {
    found.push(error.code, error.name)
  }
  const result = found.join(' ')`
const expected = 'aaa ab abab ERR_HTTP_READ_TIMEOUT ReadTimeoutError'

test('the compiled blocking client works in a process, which ends by itself', async () => {
  const code = `const origin = ${JSON.stringify(origin)}\n${use}\nconsole.log(result)`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], {
    timeout: 60_000,
  })
  assert.equal(stdout.trim(), expected)
})

test('the compiled blocking client works inside another worker', async () => {
  const file = join(folder, 'inside.mjs')
  writeFileSync(
    file,
    `import { parentPort, workerData as origin } from 'node:worker_threads'
    ${use}
    parentPort.postMessage(result)`,
  )
  const worker = new Worker(file, { workerData: origin, execArgv: [] })
  // Listen now: on a busy machine, message and exit arrive in the same turn of the event loop.
  const exited = once(worker, 'exit')
  const [result] = (await once(worker, 'message')) as [string]
  assert.equal(result, expected)
  await exited
})

test('the compiled blocking client works under flags and NODE_OPTIONS', async () => {
  const code = `const origin = ${JSON.stringify(origin)}\n${use}\nconsole.log(result)`
  const flags = ['--max-old-space-size=200', '--trace-uncaught', '--input-type=module', '-e', code]
  const env = { ...process.env, NODE_OPTIONS: '--no-deprecation' }
  const { stdout } = await run(process.execPath, flags, { timeout: 60_000, env })
  assert.equal(stdout.trim(), expected)
})
