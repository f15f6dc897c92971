/** What must work wherever a service is mounted: REST, both kinds of stream, the page's files. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import { AsyncClient } from 'runwright/http'
import { WebSocket } from 'ws'
import { readFrame } from '../../helpers/ws-peer.js'

export interface Event {
  readonly seq: number
  readonly kind: string
}

/** A client of one HTTP version for a host on this machine with a self-signed certificate. */
export function clientOf(origin: string, version: 1 | 2): AsyncClient {
  return new AsyncClient({
    baseUrl: origin,
    http1: version === 1,
    http2: version === 2,
    verify: false,
    trustEnv: false,
    timeout: null, // the test has one
  })
}

/** All events of a stream over SSE; `seen` is called with each as it arrives. */
export async function readSse(
  client: AsyncClient,
  path: string,
  seen: (event: Event) => void = () => {},
): Promise<Event[]> {
  const events: Event[] = []
  for await (const { data } of client.sse(path)) {
    const event = JSON.parse(data) as Event
    events.push(event)
    seen(event)
    if (event.kind === 'run_end') break
  }
  return events
}

/** All events of a stream over WebSocket, and the code that it is closed with. */
export async function readSocket(
  url: string,
  seen: (event: Event) => void = () => {},
): Promise<{ events: Event[]; code: number }> {
  const events: Event[] = []
  const socket = new WebSocket(url, { rejectUnauthorized: false })
  socket.on('message', (data) => {
    const event = JSON.parse(String(data)) as Event
    events.push(event)
    seen(event)
  })
  const [code] = (await once(socket, 'close')) as [number]
  return { events, code }
}

/** The same over an extended CONNECT of HTTP/2 (RFC 8441). */
export async function readSocketHttp2(
  origin: string,
  path: string,
  seen: (event: Event) => void = () => {},
): Promise<{ events: Event[]; code: number }> {
  const session = connect(origin, { rejectUnauthorized: false })
  try {
    const [settings] = (await once(session, 'remoteSettings')) as [
      { enableConnectProtocol?: boolean },
    ]
    assert.equal(settings.enableConnectProtocol, true)
    const stream = session.request({
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':scheme': new URL(origin).protocol.slice(0, -1),
      ':authority': new URL(origin).host,
      ':path': path,
      'sec-websocket-version': '13',
    })
    const [answer] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    assert.equal(answer[':status'], 200)
    const events: Event[] = []
    let rest: Buffer = Buffer.alloc(0)
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      rest = Buffer.concat([rest, chunk])
      for (let read = readFrame(rest); read !== null; read = readFrame(rest)) {
        rest = rest.subarray(read.size)
        const { opcode, payload } = read.frame
        if (opcode === 1) {
          const event = JSON.parse(String(payload)) as Event
          events.push(event)
          seen(event)
        }
        if (opcode === 8) return { events, code: payload.readUInt16BE() }
      }
    }
    throw new Error('the stream ended without a Close frame')
  } finally {
    session.destroy()
  }
}

/** Checks a log: 1, 2, 3, … and `run_end` last. */
export function assertWhole(events: readonly Event[]): void {
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
  )
  assert.equal(events.at(-1)?.kind, 'run_end')
}

/**
 * Exercises a service mounted at `base`. With `gated` its runs stop at a gate, which shows
 * that both streams are live: the gate is answered only after they have delivered it.
 */
export async function prove(
  base: string,
  version: 1 | 2,
  request: { readonly goal: string; readonly gated: boolean },
): Promise<void> {
  const { origin, pathname: prefix } = new URL(base)
  const mount = prefix === '/' ? '' : prefix
  const client = clientOf(origin, version)
  try {
    await proveRest(client, mount)
    const created = await client.post(`${mount}/api/runs`, {
      json: { goal: request.goal, hitl_enabled: request.gated },
    })
    assert.equal(created.statusCode, 201, created.text)
    const { run_id: id } = created.json() as { run_id: string }
    assert.equal(created.headers.get('location'), `${mount}/api/runs/${id}`)
    let waiting = 2
    const seen = ({ kind }: Event): void => {
      if (kind !== 'human_check_required' || --waiting > 0) return
      void client.post(`${mount}/api/runs/${id}/resume`, { json: { decision: 'abort' } })
    }
    const path = `${mount}/api/ws/${id}`
    const [overSse, overSocket] = await Promise.all([
      readSse(client, `${mount}/api/runs/${id}/events`, seen),
      version === 1
        ? readSocket(`${origin.replace('http', 'ws')}${path}`, seen)
        : readSocketHttp2(origin, path, seen),
    ])
    assertWhole(overSse)
    assert.equal(overSocket.code, 1000)
    assert.deepEqual(overSocket.events, overSse)
    const page = await client.get(`${mount}/api/runs/${id}/events`)
    assert.deepEqual(page.json(), overSse)
    const retried = await client.post(`${mount}/api/runs/${id}/retry`, {
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(retried.statusCode, 201, retried.text)
    await proveDashboard(client, mount)
  } finally {
    await client.close()
  }
}

async function proveRest(client: AsyncClient, mount: string): Promise<void> {
  const health = await client.get(`${mount}/api/health`)
  assert.equal((health.json() as { status: string }).status, 'ok')
  assert.equal((await client.head(`${mount}/api/runs`)).statusCode, 200)
  const wrong = await client.put(`${mount}/api/runs`, { json: {} })
  assert.deepEqual(
    [wrong.statusCode, wrong.headers.get('allow')],
    [405, 'POST, GET, HEAD, OPTIONS'],
  )
  // The run is followed to its end before its deletion.
  const long = await client.post(`${mount}/api/runs`, { json: { goal: 'x'.repeat(90_000) } })
  assert.deepEqual(
    [long.statusCode, (long.json() as { code: string }).code],
    [422, 'invalid_request'],
  )
  const form = await client.post(`${mount}/api/runs`, { data: { goal: 'shell: true' } })
  assert.equal(form.statusCode, 415)
  const unknown = await client.get(`${mount}/api/runs/01930000-0000-7000-8000-00000000ffff`)
  assert.equal((unknown.json() as { code: string }).code, 'run_not_found')
}

async function proveDashboard(client: AsyncClient, mount: string): Promise<void> {
  if (mount !== '') {
    const bare = await client.get(mount)
    assert.deepEqual([bare.statusCode, bare.headers.get('location')], [308, `${mount}/`])
  }
  const page = await client.get(`${mount}/`)
  assert.match(page.text, /<title>Runs · runwright<\/title>/)
  assert.match(String(page.headers.get('content-security-policy')), /default-src 'none'/)
  const loaded = new Map<string, string>()
  const waiting = filesIn(page.text, /(?:src|href)="(?:\.\/)?runwright\/([\w.-]+)"/g)
  for (const file of waiting) {
    if (loaded.has(file)) continue
    const answer = await client.get(`${mount}/runwright/${file}`)
    assert.equal(answer.statusCode, 200, file)
    loaded.set(file, String(answer.headers.get('content-type')))
    if (file.endsWith('.js')) {
      waiting.push(...filesIn(answer.text, /(?:from|import)\s*\(?["']\.\/([\w.-]+)["']/g))
    }
  }
  assert.equal(loaded.get('app.js'), 'text/javascript; charset=utf-8')
  assert.equal(loaded.get('style.css'), 'text/css; charset=utf-8')
  assert.ok(loaded.size > 40, `the page loads ${loaded.size} files`)
}

const filesIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map((match) => match[1]!)
