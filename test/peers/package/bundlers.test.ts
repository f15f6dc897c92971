import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'

// A program that uses the whole package, bundled by each tool and run where there is nothing else.

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const require = createRequire(join(root, 'test/peers/package.json'))
const folder = mkdtempSync(join(tmpdir(), 'runwright-bundlers-'))
let app: Worker
let origins: string[] = []

/** Uses what opens sockets and threads, is loaded when needed, or serves files. */
const HTTP = `
import { AsyncClient, Client, WorkerError } from 'runwright/http'
async function http(origin, secureOrigin) {
  const found = []
  const client = new Client({ baseUrl: origin, timeout: 10_000, trustEnv: false })
  found.push(client.get('/bytes?n=3').text)
  found.push(client.post('/echo', { content: ['a', 'b'].values() }).json().body)
  const response = client.stream('GET', '/encoded?coding=gzip&text=ab&times=2')
  for (const line of response.iterLines()) found.push(line)
  try {
    client.get('/never', { timeout: { read: 50 } })
  } catch (error) {
    found.push(error.code, error.name)
  }
  client.close()
  const options = { baseUrl: secureOrigin, verify: false, http2: true, trustEnv: false }
  found.push(new Client(options).get('/bytes?n=2').httpVersion)
  const other = new AsyncClient(options)
  found.push((await other.get('/bytes?n=2')).httpVersion)
  await other.close()
  return found
}
`
const HTTP_RESULT = [
  'aaa', 'ab', 'abab', 'ERR_HTTP_READ_TIMEOUT', 'ReadTimeoutError', 'HTTP/2', 'HTTP/2',
]

const ALL = `
import { agent, http as httpModule, server, ws } from 'runwright'
import { createServer } from 'node:http'
import { FileStore, RunEngine } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { createRunService } from 'runwright/server'
import { WebSocketServer } from 'runwright/ws'
import { mkdirSync, writeFileSync } from 'node:fs'
async function all() {
  const found = [agent.RunEngine === RunEngine, httpModule.Client === Client]
  found.push(ws.WebSocketServer === WebSocketServer)
  found.push(server.createRunService === createRunService, typeof ManualClock)
  mkdirSync('project')
  writeFileSync('project/package.json', '{"type":"module"}')
  writeFileSync('project/sum.js', 'export const sum = (a, b) => a - b\\n')
  writeFileSync('project/sum.test.js', \`
    import assert from 'node:assert/strict'
    import { test } from 'node:test'
    import { sum } from './sum.js'
    test('adds', () => assert.equal(sum(1, 2), 3))
  \`)
  const service = await createRunService({
    engine: { store: new FileStore({ directory: 'data' }), roots: ['project'] },
  })
  const listener = createServer(service.handler)
  service.attach(listener)
  await new Promise((done) => listener.listen(0, '127.0.0.1', done))
  const baseUrl = 'http://127.0.0.1:' + listener.address().port
  const client = new AsyncClient({ baseUrl, trustEnv: false })
  const created = await client.post('/api/runs', { json: { goal: 'shell: node --test' } })
  const id = created.json().run_id
  const headers = { accept: 'text/event-stream' }
  await client.get('/api/runs/' + id + '/events', { headers, timeout: 60_000 })
  found.push((await client.get('/api/runs/' + id)).json().status)
  for (const path of ['/', '/runwright/app.js', '/runwright/style.css']) {
    const page = await client.get(path)
    found.push(page.statusCode, page.headers.get('content-type'), page.text.length > 200)
  }
  await client.close()
  await service.close()
  listener.close()
  return found
}
`
const MAIN = (calls: string) => `
async function main() {
  const [origin, secureOrigin] = process.argv.slice(2)
  console.log(JSON.stringify(${calls}))
}
main()
`
const PROGRAMS = {
  http: `${HTTP}${MAIN('await http(origin, secureOrigin)')}`,
  all: `${HTTP}${ALL}${MAIN('[...(await http(origin, secureOrigin)), ...(await all())]')}`,
}

before(async () => {
  const installed = join(folder, 'node_modules/runwright')
  mkdirSync(installed, { recursive: true })
  cpSync(join(root, 'package.json'), join(installed, 'package.json'))
  await run(process.execPath, [join(root, 'build.mjs'), join(installed, 'dist')])
  writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}')
  for (const [name, code] of Object.entries(PROGRAMS)) {
    writeFileSync(join(folder, `${name}.js`), code)
  }
  app = new Worker(join(root, 'test/fixtures/http/app-worker.mjs'), { execArgv: [] })
  const [ports] = (await once(app, 'message')) as [{ port: number; securePort: number }]
  origins = [`http://127.0.0.1:${ports.port}`, `https://127.0.0.1:${ports.securePort}`]
})
after(async () => {
  await app?.terminate()
  rmSync(folder, { recursive: true, force: true })
})

interface Build {
  readonly entry: string
  readonly out: string
  readonly format: 'esm' | 'cjs'
  readonly minify: boolean
}

/** Each bundles the program into a folder, where it is `main.mjs` or `main.cjs`. */
const BUNDLERS: Readonly<Record<string, (build: Build) => Promise<unknown>>> = {
  esbuild: ({ entry, out, format, minify }) =>
    require('esbuild').build({
      entryPoints: { main: entry },
      outdir: out,
      outExtension: { '.js': extension(format) },
      bundle: true,
      platform: 'node',
      format,
      minify,
      logLevel: 'error',
      logOverride: { 'empty-import-meta': 'error' },
    }),
  async rollup({ entry, out, format }) {
    const { rollup } = require('rollup')
    const { nodeResolve } = require('@rollup/plugin-node-resolve')
    const bundle = await rollup({
      input: { main: entry },
      plugins: [nodeResolve({ exportConditions: ['node'] })],
      external: /^node:/,
      onwarn: (warning: { message: string }) => assert.fail(warning.message),
    })
    const names = `[name]${extension(format)}`
    await bundle.write({ dir: out, format, entryFileNames: names, chunkFileNames: names })
  },
  async vite({ entry, out, format, minify }) {
    const { build } = await import(pathToFileURL(require.resolve('vite')).href)
    const names = `[name]${extension(format)}`
    await build({
      root: folder,
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: {
        ssr: true,
        outDir: out,
        minify,
        rollupOptions: {
          input: { main: entry },
          output: { format, entryFileNames: names, chunkFileNames: names },
        },
      },
    })
  },
  async webpack({ entry, out, format, minify }) {
    const webpack = require('webpack')
    const esm = format === 'esm'
    const compiler = webpack({
      mode: minify ? 'production' : 'development',
      target: 'node20',
      context: folder,
      entry: { main: entry },
      experiments: { outputModule: esm },
      output: {
        path: out,
        filename: `[name]${extension(format)}`,
        chunkFilename: `[name].chunk${extension(format)}`,
        module: esm,
      },
    })
    const stats = await promisify(compiler.run.bind(compiler))()
    assert.deepEqual(stats.toJson({ all: false, errors: true, warnings: true }).errors, [])
    assert.deepEqual(stats.toJson({ all: false, errors: true, warnings: true }).warnings, [])
  },
}

const extension = (format: string): string => (format === 'esm' ? '.mjs' : '.cjs')

for (const [tool, bundle] of Object.entries(BUNDLERS)) {
  for (const format of ['esm', 'cjs'] as const) {
    for (const minify of tool === 'rollup' ? [false] : [false, true]) {
      for (const program of ['http', 'all']) {
        const name = `${tool} bundles ${program} as ${format}${minify ? ', minified' : ''}`
        test(`${name}, and the bundle runs alone`, async () => {
          const out = join(folder, `${tool}-${program}-${format}-${minify}`)
          await bundle({ entry: join(folder, `${program}.js`), out, format, minify })
          const alone = mkdtempSync(join(tmpdir(), 'runwright-alone-'))
          try {
            for (const file of readdirSync(out)) {
              cpSync(join(out, file), join(alone, 'bundle', file), { recursive: true })
            }
            const empty = join(alone, 'empty')
            mkdirSync(empty)
            const main = join(alone, 'bundle', `main${extension(format)}`)
            const args = [main, ...origins]
            const { stdout } = await run(process.execPath, args, { cwd: empty, timeout: 120_000 })
            const found = JSON.parse(stdout) as unknown[]
            assert.deepEqual(found.slice(0, HTTP_RESULT.length), HTTP_RESULT)
            if (program === 'http') return
            assert.deepEqual(found.slice(HTTP_RESULT.length), [
              true, true, true, true, 'function', 'achieved',
              200, 'text/html; charset=utf-8', true,
              200, 'text/javascript; charset=utf-8', true,
              200, 'text/css; charset=utf-8', true,
            ])
          } finally {
            rmSync(alone, { recursive: true, force: true })
          }
        })
      }
    }
  }
}
