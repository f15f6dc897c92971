/**
 * A service whose runs do nothing, in front of which the routes of workspaces answer what a test
 * says: for answers that a real run gives rarely, or never.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import type {
  ApplyResult, CheckpointReason, FileList, NetChange, NetChanges, RunDetails,
} from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { FakeEngine } from '../../server/fake-engine.js'
import { complaintsOf } from './browser.js'

export interface Answer {
  readonly status?: number
  readonly json?: unknown
  readonly bytes?: Uint8Array | string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Request {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: Record<string, unknown> | null
  readonly headers: IncomingMessage['headers']
}

/** By the end of the path, such as `changes`; `files/…` also goes to `files`; `create`: a new run. */
export type Routes = Record<string, (request: Request) => Answer | Promise<Answer>>

/** The problem of a refused call. */
export function problem(status: number, code: string, detail: string, paths?: string[]): Answer {
  const headers = { 'content-type': 'application/problem+json' }
  return { status, headers, json: { title: '', status, code, detail, paths } }
}

export function changed(path: string, facts: Partial<NetChange> = {}): NetChange {
  return {
    path,
    old_path: null,
    status: 'modified',
    additions: 1,
    deletions: 1,
    binary: false,
    mode: { before: '100644', after: '100644' },
    diff:
      `--- a/${path}\n+++ b/${path}\n@@ -1,2 +1,2 @@\n` +
      `-old of ${path}\n+new of ${path}\n same\n`,
    redacted: false,
    group: null,
    ...facts,
  }
}

export function changesOf(...changes: NetChange[]): NetChanges {
  return { from: 'a', to: 'b', changes, more: 0, left_out: [], note: null }
}

/** The answer to an apply; by default, nothing was to be done. */
export function appliedAs(facts: Partial<ApplyResult>): Answer {
  const lists = { applied: [], merged: [], skipped: [], conflicts: [], held_back: [] }
  return { json: { ...lists, checkpoint_id: null, ...facts } }
}

export function listOf(path: string, ...entries: FileList['entries']): FileList {
  return { path, at: 'b', entries, more: 0 }
}

export interface FakeService {
  readonly engine: FakeEngine
  readonly runId: string
  readonly url: string
  readonly requests: Request[]
  readonly routes: Routes
  /** Answers no call whose method and path match, such as `POST /api/runs`, until it is called. */
  hold(pattern: RegExp): () => void
  /** Changes the details of the run. */
  set(details: Partial<RunDetails>): void
  /** Appends a checkpoint with this digit as its id. */
  checkpoint(digit: string, reason: CheckpointReason): string
}

export interface FakeOptions {
  /** @defaultValue true */
  readonly sockets?: boolean
  /** Of the service, in milliseconds after the clock of this machine; null tells no time. */
  readonly clockAhead?: number | null
  /** Is a call refused for want of a key? */
  readonly refuses?: (path: string) => boolean
}

export async function openFake(
  t: TestContext,
  routes: Routes,
  { sockets = true, clockAhead = 0, refuses = () => false }: FakeOptions = {},
): Promise<FakeService> {
  const holds = new Set<{ readonly pattern: RegExp; readonly over: Promise<void> }>()
  const engine = new FakeEngine()
  const runId = engine.add()
  const service = await createRunService({ engine })
  const requests: Request[] = []
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost')
    const isHeld = ({ pattern }: { pattern: RegExp }): boolean =>
      [pathname, request.url].some((asked) => pattern.test(`${request.method} ${asked}`))
    const held = [...holds].filter(isHeld)
    void Promise.all(held.map(({ over }) => over)).then(() => answer(request, response))
  })
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? '', 'http://localhost')
    if (clockAhead === null) response.sendDate = false
    else if (clockAhead !== 0)
      response.setHeader('Date', new Date(Date.now() + clockAhead).toUTCString())
    if (refuses(url.pathname)) {
      response.writeHead(401, { 'content-type': 'application/problem+json' })
      return void response.end('{"status":401,"code":"unauthorized","detail":"a key is needed"}')
    }
    const isNew = request.method === 'POST' && url.pathname === '/api/runs'
    const [, path = isNew ? 'create' : undefined] =
      /^\/api\/runs\/[^/]+\/(.+)$/.exec(url.pathname) ?? []
    const route = routes[path?.split('/')[0] ?? '']
    if (path === undefined || route === undefined) return void service.handler(request, response)
    void (async () => {
      const body = await text(request)
      const { method = '', headers } = request
      const parsed = body === '' ? null : (JSON.parse(body) as Record<string, unknown>)
      const asked: Request = { method, path, query: url.searchParams, body: parsed, headers }
      requests.push(asked)
      const answer = await route(asked)
      const type = answer.bytes === undefined ? 'application/json' : 'application/octet-stream'
      response.writeHead(answer.status ?? 200, { 'content-type': type, ...answer.headers })
      response.end(answer.bytes ?? (answer.json === undefined ? '' : JSON.stringify(answer.json)))
    })()
  }
  if (sockets) service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
  })
  const run = engine.runs.get(runId)!
  return {
    engine,
    runId,
    requests,
    routes,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    hold: (pattern) => {
      let release = (): void => {}
      const over = new Promise<void>((resolve) => (release = resolve))
      const held = { pattern, over }
      holds.add(held)
      return () => {
        holds.delete(held)
        release()
      }
    },
    set: (details) => Object.assign(run.details, details),
    checkpoint: (digit, reason) => {
      const checkpoint_id = digit.repeat(64)
      Object.assign(run.details, { checkpoint_id })
      const left_out = [{ reason: 'secret' as const, count: 1, paths: ['.env'] }]
      const facts = { files: 3, bytes: 4_096, new_bytes: 10, left_out }
      engine.append(runId, 'checkpoint', { checkpoint_id, reason, ...facts })
      return checkpoint_id
    },
  }
}

/** Opens an address of the run; the test fails on any warning or error of the browser. */
export async function openRun(
  t: TestContext,
  context: BrowserContext,
  fake: FakeService,
  tab = '',
): Promise<Page> {
  const page = await context.newPage()
  const complaints = complaintsOf(page, /status of (401|403|404|409|410|422|429|503)|net::ERR_/)
  t.after(async () => {
    await page.close()
    assert.deepEqual(complaints, [])
  })
  await page.goto(`${fake.url}#/runs/${fake.runId}${tab}`)
  await page.locator('.stream.live, .stream.ended').first().waitFor({ state: 'attached' })
  return page
}

/** A service with a checkpoint at the start, and one after each of two iterations. */
export async function twoIterations(
  t: TestContext,
  routes: Routes = {},
): Promise<FakeService> {
  const fake = await openFake(t, {
    changes: () => ({ json: changesOf(changed('src/a.js'), changed('src/b.js')) }),
    ...routes,
  })
  const { engine, runId } = fake
  fake.checkpoint('0', 'start')
  for (const k of [1, 2]) {
    engine.iteration = k
    engine.append(runId, 'iteration_complete', { iteration: k, tokens: 10 })
    fake.checkpoint(String(k), 'iteration')
  }
  return fake
}
