/** Stores, pools and subscribers for tests that disturb them. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  PostgresStore,
  StoreError,
  type AgentEvent,
  type PgClient,
  type PgPool,
  type PgQuery,
  type PgResult,
  type PostgresStoreOptions,
  type RunEngine,
} from 'runwright/agent'
import type { Postgres } from './postgres.js'
import { openTcpProxy, type TcpProxy } from './tcp-proxy.js'

/** Opens a store and closes it after the test. */
export async function openStore(
  t: TestContext,
  options: PostgresStoreOptions,
): Promise<PostgresStore> {
  const store = new PostgresStore(options)
  await store.open()
  t.after(() => store.close())
  return store
}

/** Opens a proxy and closes it after the test. */
export async function proxyTo(t: TestContext, port: number): Promise<TcpProxy> {
  const proxy = await openTcpProxy(port)
  t.after(() => proxy.close())
  return proxy
}

/** A pool whose statements go through `run`. */
export function wrap(
  pool: PgPool,
  run: (client: PgClient, query: PgQuery) => Promise<PgResult>,
): PgPool {
  const wrapped = new WeakMap<PgClient, PgClient>()
  const wrapClient = (client: PgClient): PgClient => ({
    query: (query) => run(client, query),
    release: (destroy) => client.release(destroy),
    on: ((event: 'end', listener: () => void) => client.on(event, listener)) as PgClient['on'],
  })
  return {
    connect(callback) {
      pool.connect((error, client) => {
        if (client === undefined) return callback(error, undefined)
        const known = wrapped.get(client) ?? wrapClient(client)
        wrapped.set(client, known)
        callback(undefined, known)
      })
    },
  }
}

/** The error of a driver whose connection was lost. */
export function connectionLost(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
}

/** Claims whenever the store reports a claimable run; resolves with the first claim. */
export async function firstClaim(store: PostgresStore): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    let claiming = false
    store.shared.listen({
      abortRequested: () => undefined,
      lost: () => undefined,
      doubtful: () => undefined,
      messagesLeft: () => undefined,
      claimable: () => {
        if (claiming) return
        claiming = true
        store.shared.claim(1).then(([claim]) => {
          claiming = false
          if (claim !== undefined) resolve(claim)
        }, reject)
      },
    })
  })
}

/** Repeats `work` until it succeeds. */
export async function until(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work()
      return
    } catch {
      await new Promise((resolve) => setImmediate(resolve)) // not yet
    }
  }
}

/** Lets nothing pass until every process has lost its lease. */
export async function outlastLeases(
  postgres: Postgres,
  proxy: TcpProxy,
  schema: string,
): Promise<void> {
  proxy.stall()
  const direct = postgres.pool({ max: 1 })
  const text = `SELECT 1 FROM ${schema}.workers WHERE expires_at > clock_timestamp()`
  await until(async () => assert.equal((await direct.query(text)).rowCount, 0))
  await direct.end()
  proxy.flow()
}

/** Follows a run to its end; a broken subscription is resumed after its last event. */
export async function followThrough(
  engine: RunEngine,
  runId: string,
  onEvent: (event: AgentEvent) => void = () => undefined,
): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  while (events.at(-1)?.kind !== 'run_end') {
    try {
      const reader = await engine.subscribe(runId, { after: events.at(-1)?.seq ?? 0 })
      for await (const batch of reader) {
        for (const { json } of batch) {
          const event = JSON.parse(json) as AgentEvent
          events.push(event)
          onEvent(event)
        }
      }
      if (reader.end === 'run_end') assert.equal(events.at(-1)?.kind, 'run_end')
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
    }
  }
  return events
}
