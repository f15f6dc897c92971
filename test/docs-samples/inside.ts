/** Helpers for the code around samples, see `rules.ts`; loaded in the process of the sample. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { RunEngine, type EngineOptions, type RunDetails, type StartRequest } from 'runwright/agent'
import { RunServiceClient, type RunService } from 'runwright/server'
import { opening, RawPeer, text } from '../helpers/ws-peer.js'

export { twoSteps } from '../helpers/plant-bugs.js'
export { assert }

/** The lines that the sample has printed. */
export const printed: string[] = []
const print = console.log
console.log = (...values: unknown[]): void => {
  printed.push(
    values.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' '),
  )
  print(...values)
}

/** Resolves to `http://127.0.0.1:port` once the server listens. */
export async function originOf(server: Server): Promise<string> {
  if (!server.listening) await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Starts a run whose goal is met at once, and asserts that it achieves it. */
export async function tryService(baseUrl: string, key?: string): Promise<void> {
  await using runs = new RunServiceClient({ baseUrl, key, trustEnv: false })
  const { run_id } = await runs.create({ goal: 'shell: true' })
  assert.equal((await runs.wait(run_id)).status, 'achieved')
}

/** Closes a service and its HTTP server. */
export async function shut(service: RunService, server: Server): Promise<void> {
  await service.close({ graceMs: 0 })
  server.close()
  server.closeAllConnections()
}

/** Creates a run, waits for its end, and returns its details. */
export async function doRun(
  from: EngineOptions | RunEngine,
  request: StartRequest,
): Promise<RunDetails> {
  const engine = from instanceof RunEngine ? from : await RunEngine.open(from)
  try {
    const { details } = await engine.create(request)
    for await (const batch of await engine.subscribe(details.run_id)) assert.ok(batch.length > 0)
    return await engine.get(details.run_id)
  } finally {
    await engine.close()
  }
}

/** A minimal WebSocket client; `next` resolves to the payload of the next frame. */
export interface Peer {
  send(message: string): void
  next(): Promise<string>
  end(): void
}

/** @throws Error with the status if the server refuses. */
export async function connectPeer(
  origin: string,
  path: string,
  protocols?: readonly string[],
): Promise<Peer> {
  const peer = await RawPeer.connect(Number(new URL(origin).port))
  const offered = protocols === undefined ? {} : { 'sec-websocket-protocol': protocols.join(', ') }
  peer.write(opening(offered, { path }))
  const { status } = await peer.head()
  if (status !== 101) {
    peer.socket.destroy()
    throw new Error(`the server refused with ${status}`)
  }
  return {
    send: (message) => peer.write(text(message)),
    next: async () => String((await peer.next())?.payload),
    end: () => void peer.socket.destroy(),
  }
}
