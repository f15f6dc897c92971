/** A program as an app would write it, for bundlers and other runtimes, and what it must do. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { assertWhole, clientOf, prove, readSse } from '../server/proof.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** `http(origin, secureOrigin)`: what opens sockets and threads, or is loaded when needed. */
export const HTTP = `
import { AsyncClient, Client, WorkerError } from 'runwright/http'
async function http(origin, secureOrigin) {
  const found = []
  const client = new Client({ baseUrl: origin, timeout: 10_000, trustEnv: false })
  found.push(client.get('/bytes?n=3').text)
  found.push(client.post('/echo', { content: ['a', 'b'].values() }).json().body)
  found.push(client.post('/echo', { json: { a: 1 } }).json().body)
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
export const HTTP_RESULT: readonly unknown[] = [
  'aaa', 'ab', '{"a":1}', 'abab', 'ERR_HTTP_READ_TIMEOUT', 'ReadTimeoutError', 'HTTP/2', 'HTTP/2',
]

/** `serve()`: the service at the root of a server, which ends when the process is told to. */
export const SERVE = `
import { agent, http as httpModule, server, ws } from 'runwright'
import { createServer } from 'node:http'
import { FileStore, RunEngine } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { repairModel } from 'runwright/repair'
import { createRunService, drainOnSignal } from 'runwright/server'
import { WebSocketServer } from 'runwright/ws'
async function serve() {
  const same = [agent.RunEngine === RunEngine, httpModule.Client === Client]
  same.push(ws.WebSocketServer === WebSocketServer, typeof ManualClock === 'function')
  same.push(server.createRunService === createRunService)
  if (same.includes(false)) throw new Error('there are two of one class: ' + same)
  const service = await createRunService({
    engine: {
      store: new FileStore({ directory: './data' }), roots: ['./project'],
      providers: [repairModel()], defaultModel: 'builtin:repair',
    },
  })
  const listener = createServer(service.handler)
  service.attach(listener)
  await new Promise((done) => listener.listen(0, '127.0.0.1', done))
  drainOnSignal(service, [listener])
  return 'http://127.0.0.1:' + listener.address().port
}
`

/** A module that prints `calls`, an array, as a line of JSON. */
export const main = (calls: string): string => `
async function main() {
  const [origin, secureOrigin] = process.argv.slice(2)
  console.log(JSON.stringify(${calls}))
}
main()
`

/** Puts the package as it is built, in the folder `dist`, where programs in `folder` find it. */
export function installIn(folder: string, dist: string): void {
  const installed = join(folder, 'node_modules/runwright')
  mkdirSync(installed, { recursive: true })
  cpSync(join(root, 'package.json'), join(installed, 'package.json'))
  cpSync(dist, join(installed, 'dist'), { recursive: true })
}

export interface HostProgram {
  readonly file: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Where the service is mounted. Default: at the root. */
  readonly mount?: string
}

/**
 * Starts a program in an empty folder with a project whose test fails. It prints an array as
 * one line of JSON that ends with its address, where everything of a service must work.
 *
 * @param check - Gets what comes before the address, and the address.
 */
export async function proveHost(
  { file, args, env = {}, mount = '' }: HostProgram,
  check: (found: readonly unknown[], origin: string) => Promise<void> | void,
): Promise<void> {
  const cwd = mkdtempSync(join(tmpdir(), 'runwright-empty-'))
  writeProject(join(cwd, 'project'))
  const child = spawn(file, args, {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', HOME: cwd, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  try {
    const found = JSON.parse(await foundLine(child.stdout)) as unknown[]
    const origin = String(found.at(-1))
    await check(found.slice(0, -1), origin)
    await proveRuns(origin, mount)
    await prove(`${origin}${mount}`, 1, { goal: 'shell: true', gated: true })
    child.kill('SIGTERM')
    assert.deepEqual(await closed, [0, null])
  } finally {
    child.kill('SIGKILL')
    rmSync(cwd, { recursive: true, force: true })
  }
}

/** The first line that is an array: a framework may say something of its own before. */
async function foundLine(stream: Readable): Promise<string> {
  let text = ''
  for await (const chunk of stream.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += chunk
    const [line] = /^\[.*(?=\n)/m.exec(text) ?? []
    if (line !== undefined) return line
  }
  throw new Error(`the program ended with ${text}`)
}

/** The first command of a process, and one that says more than a pipe holds, until it passes. */
const GOALS = ['shell: true', 'shell: seq 1 50000; node --test']

async function proveRuns(origin: string, mount: string): Promise<void> {
  const client = clientOf(origin, 1)
  try {
    for (const goal of GOALS) {
      const created = await client.post(`${mount}/api/runs`, { json: { goal } })
      const { run_id: id } = created.json() as { run_id: string }
      const events = await readSse(client, `${mount}/api/runs/${id}/events`)
      assertWhole(events)
      assert.doesNotMatch(JSON.stringify(events), /was not started/)
      const { status } = (await client.get(`${mount}/api/runs/${id}`)).json() as { status: string }
      assert.equal(status, 'achieved')
    }
  } finally {
    await client.close()
  }
}

function writeProject(folder: string): void {
  mkdirSync(folder)
  const files = {
    'package.json': '{"type":"module"}',
    'sum.js': 'export const sum = (a, b) => a - b\n',
    'sum.test.js': `
      import assert from 'node:assert/strict'
      import { test } from 'node:test'
      import { sum } from './sum.js'
      test('adds', () => assert.equal(sum(1, 2), 3))`,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}
