import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { clientOf } from '../server/proof.js'
import { HTTP, HTTP_RESULT, installIn, main, proveHost, SERVE } from './host.js'
import { buildInto } from './tarball.js'

// The package as it is built, in Bun, Deno and a Next.js app.

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const runtimes = join(root, 'test/peers/runtimes')
const binary = (name: string): string => join(runtimes, 'node_modules/.bin', name)
const folder = mkdtempSync(join(tmpdir(), 'runwright-runtimes-'))
const app = join(folder, 'app')
const dist = join(folder, 'dist')
let peer: Worker
let origins: string[] = []

const isAll = (found: readonly unknown[]): void => assert.deepEqual(found, HTTP_RESULT)

before(async () => {
  await run('npm', ['install', '--no-save', '--prefix', runtimes], { timeout: 600_000 })
  await buildInto(dist)
  mkdirSync(app)
  const manifest = { type: 'module', private: true, dependencies: { runwright: '*' } }
  writeFileSync(join(app, 'package.json'), JSON.stringify(manifest))
  const calls = '[...(await http(origin, secureOrigin)), await serve()]'
  writeFileSync(join(app, 'host.mjs'), `${HTTP}${SERVE}${main(calls)}`)
  installIn(app, dist)
  peer = new Worker(join(root, 'test/fixtures/http/app-worker.mjs'), { execArgv: [] })
  const [ports] = (await once(peer, 'message')) as [{ port: number; securePort: number }]
  origins = [`http://127.0.0.1:${ports.port}`, `https://127.0.0.1:${ports.securePort}`]
})
after(async () => {
  await peer?.terminate()
  rmSync(folder, { recursive: true, force: true })
})

test('Bun runs the package', async () => {
  await proveHost({ file: binary('bun'), args: [join(app, 'host.mjs'), ...origins] }, isAll)
})

test('Deno runs the package', async () => {
  const args = ['run', '--allow-all', '--no-lock', join(app, 'host.mjs'), ...origins]
  await proveHost({ file: binary('deno'), args }, isAll)
})

test('Bun bundles it, and compiles it into one file', async () => {
  const script = join(folder, 'by-bun.mjs')
  const words = ['build', join(app, 'host.mjs')]
  await run(binary('bun'), [...words, '--target=bun', '--minify', '--outfile', script])
  const executable = join(folder, 'by-bun')
  await run(binary('bun'), [...words, '--compile', '--outfile', executable])
  await withoutPackage(async () => {
    await proveHost({ file: binary('bun'), args: [script, ...origins] }, isAll)
    await proveHost({ file: executable, args: origins }, isAll)
  })
})

/** A page, and a route that uses the package, which Next.js bundles with it: no setting says not to. */
const NEXT_APP: Readonly<Record<string, string>> = {
  'package.json': '{"type":"module","private":true}',
  'next.config.mjs': 'export default { turbopack: { root: process.cwd() } }',
  'app/layout.js':
    'export default ({ children }) => <html lang="en"><body>{children}</body></html>',
  'app/page.js': 'export default () => <h1>hello from the host</h1>',
  'app/own/route.js': `
    import { MemoryStore, RunEngine } from 'runwright/agent'
    import { repairModel } from 'runwright/repair'
    import { Client } from 'runwright/http'
    export const dynamic = 'force-dynamic'
    export async function GET(request) {
      const origin = new URL(request.url).searchParams.get('origin')
      const client = new Client({ baseUrl: origin, timeout: 10_000, trustEnv: false })
      const engine = await RunEngine.open({
        store: new MemoryStore(), roots: [process.cwd()],
        providers: [repairModel()], defaultModel: 'builtin:repair',
      })
      const { details } = await engine.create({ goal: 'shell: true', cwd: process.cwd() })
      let last
      for await (const events of await engine.subscribe(details.run_id)) last = events.at(-1)
      await engine.close()
      return Response.json([client.get('/bytes?n=3').text, JSON.parse(last.json).payload.status])
    }`,
}
/** The custom server, which serves the app as well. */
const NEXT_SERVER = `
import next from 'next'
import { createServer } from 'node:http'
import { Client } from 'runwright/http'
import { FileStore } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { createRunService, drainOnSignal } from 'runwright/server'
const [origin, , dir] = process.argv.slice(2)
const app = next({ dev: false, dir })
await app.prepare()
const handle = app.getRequestHandler()
const service = await createRunService({
  basePath: '/agents',
  engine: {
    store: new FileStore({ directory: './data' }), roots: ['./project'],
    providers: [repairModel()], defaultModel: 'builtin:repair',
  },
})
const server = createServer((request, response) => {
  service.handler(request, response, () => handle(request, response))
})
service.attach(server)
await new Promise((done) => server.listen(0, '127.0.0.1', done))
drainOnSignal(service, [server], { onClosed: () => app.close() })
const client = new Client({ baseUrl: origin, timeout: 10_000, trustEnv: false })
const found = [client.get('/bytes?n=3').text]
console.log(JSON.stringify([...found, 'http://127.0.0.1:' + server.address().port]))
`

test('a Next.js app has it in its bundle, and in its custom server', async () => {
  const dir = join(folder, 'next')
  for (const [name, text] of Object.entries(NEXT_APP)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), text)
  }
  mkdirSync(join(dir, 'server'))
  writeFileSync(join(dir, 'server/main.mjs'), NEXT_SERVER)
  cpSync(join(runtimes, 'node_modules'), join(dir, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !/node_modules\/(@?bun|@?deno|@oven)\b/.test(path),
  })
  installIn(dir, dist)
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }
  const cli = join(dir, 'node_modules/next/dist/bin/next')
  await run(process.execPath, [cli, 'build'], { cwd: dir, env, timeout: 600_000 })
  // The server alone still finds the package.
  mkdirSync(join(dir, 'server/node_modules'))
  renameSync(join(dir, 'node_modules/runwright'), join(dir, 'server/node_modules/runwright'))
  const args = [join(dir, 'server/main.mjs'), ...origins.slice(0, 2), dir]
  const host = { file: process.execPath, args, env: { NODE_ENV: 'production' }, mount: '/agents' }
  await proveHost(host, async (found, origin) => {
    assert.deepEqual(found, ['aaa'])
    const client = clientOf(origin, 1)
    assert.match((await client.get('/')).text, /hello from the host/)
    const own = await client.get('/own', { params: { origin: origins[0]! } })
    assert.deepEqual(own.json(), ['aaa', 'achieved'], own.text)
    await client.close()
  })
})

/** Nothing of the package is left but what was built into a program. */
async function withoutPackage(use: () => Promise<void>): Promise<void> {
  const installed = join(app, 'node_modules/runwright')
  renameSync(installed, join(folder, 'aside'))
  try {
    await use()
  } finally {
    renameSync(join(folder, 'aside'), installed)
  }
}
