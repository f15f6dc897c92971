/**
 * The service behind nginx, HAProxy and Apache, set up as their documentation and common guides
 * say. Without keys each set-up is either refused, or named in docs/mounting.md as one that cannot
 * be told from a local caller. With keys all of them work.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AsyncClient } from 'runwright/http'
import { bearerKeys } from 'runwright/server'
import { WebSocket } from 'ws'
import { missing } from '../programs.js'
import { assertWhole, readSse, type Event } from './proof.js'
import { openService, startProxy, type ProxyName } from './reverse-proxies.js'

const KEY = 'a-key-behind-a-proxy-0001'
const guide = readFileSync(
  fileURLToPath(new URL('../../../docs/mounting.md', import.meta.url)),
  'utf8',
)

interface Recipe {
  readonly config: string
  /**
   * Without keys: all is refused; or no command gets through, but a request without any header
   * does; or all gets through. @defaultValue 'refused'
   */
  readonly without?: 'refused' | 'reads' | 'hidden'
  /** The part of docs/mounting.md that names it, unless it is refused. */
  readonly named?: string
  /** Whether it passes WebSockets on. @defaultValue false */
  readonly sockets?: boolean
  /** False for the one that our side does not speak. @defaultValue true */
  readonly works?: boolean
}

const NGINX = 'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_http_version 1.1;'
const NAMED =
  'upstream backend { server 127.0.0.1:8000; keepalive 16; } ' +
  'location /agents/ { proxy_pass http://backend; proxy_http_version 1.1;'
const MAP = "map $http_upgrade $connection_upgrade { default upgrade; '' close; } "
const EMPTY_MAP = "map $http_upgrade $connection_upgrade { default upgrade; '' ''; } "
const UPGRADE = 'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection'
const HIDES = 'HTTP/1.1 without a `Connection` line of its own'

const RECIPES: Readonly<Record<ProxyName, Readonly<Record<string, Recipe>>>> = {
  nginx: {
    'the location of our guide': {
      config: /^```nginx\n(.*?)^```$/ms.exec(guide)?.[1] ?? '',
      sockets: true,
    },
    'proxy_pass alone': { config: 'location /agents/ { proxy_pass http://127.0.0.1:8000; }' },
    'proxy_pass alone and a local Host': {
      config:
        'location /agents/ { proxy_pass http://127.0.0.1:8000; proxy_set_header Host localhost; }',
    },
    'HTTP/1.1 alone': { config: `${NGINX} }`, without: 'reads', named: HIDES },
    'Connection "upgrade" and an address': {
      config: `${NGINX} ${UPGRADE} "upgrade"; }`,
      sockets: true,
    },
    'Connection "upgrade", an address and the Host of the request': {
      config: `${NGINX} proxy_set_header Host $host; ${UPGRADE} "upgrade"; }`,
      sockets: true,
    },
    'Connection "upgrade" and a named server': {
      config: `${NAMED} ${UPGRADE} "upgrade"; }`,
      sockets: true,
    },
    'Connection $connection_upgrade and an address': {
      config: `${MAP} ${NGINX} ${UPGRADE} $connection_upgrade; }`,
      sockets: true,
    },
    'Connection $connection_upgrade and a named server': {
      config: `${MAP} ${NAMED} ${UPGRADE} $connection_upgrade; }`,
      sockets: true,
    },
    'Connection $connection_upgrade below the Host of the request': {
      config: `${MAP} ${NGINX} proxy_set_header Host $host; ${UPGRADE} $connection_upgrade; }`,
      sockets: true,
      without: 'reads',
      named: HIDES,
    },
    'Connection $connection_upgrade for keep-alive': {
      config: `${EMPTY_MAP} ${NGINX} ${UPGRADE} $connection_upgrade; }`,
      sockets: true,
      without: 'hidden',
      named: HIDES,
    },
    'keep-alive and a named server': { config: `${NAMED} proxy_set_header Connection ""; }` },
    'an empty Connection and an address': {
      config: `${NGINX} proxy_set_header Connection ""; proxy_buffering off; }`,
      without: 'hidden',
      named: HIDES,
    },
    'the usual forwarding headers': {
      config: `${NGINX} ${UPGRADE} "upgrade"; proxy_set_header Host $host;
        proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }`,
      sockets: true,
    },
    ...Object.fromEntries(
      [
        'X-Forwarded-For $remote_addr',
        'Forwarded "for=$remote_addr"',
        'Via "1.1 nginx"',
        'X-Real-IP $remote_addr',
        'X-Scheme $scheme',
        'X-NginX-Proxy true',
      ].map((header) => [
        `an empty Connection and ${header.split(' ')[0]} alone`,
        { config: `${NGINX} proxy_set_header Connection ""; proxy_set_header ${header}; }` },
      ]),
    ),
  },
  haproxy: {
    'a server alone': {
      config: 'server one 127.0.0.1:8000',
      sockets: true,
      without: 'hidden',
      named: 'HAProxy without `option forwardfor`',
    },
    'option http-server-close': {
      config: 'option http-server-close\n  server one 127.0.0.1:8000',
      sockets: true,
      without: 'hidden',
      named: 'HAProxy without `option forwardfor`',
    },
    'option forwardfor': {
      config: 'option forwardfor\n  server one 127.0.0.1:8000',
      sockets: true,
    },
    'option forwardfor and http-server-close': {
      config: 'option forwardfor\n  option http-server-close\n  server one 127.0.0.1:8000',
      sockets: true,
    },
    'X-Forwarded-Proto': {
      config: 'http-request set-header X-Forwarded-Proto http\n--\n  server one 127.0.0.1:8000',
      sockets: true,
    },
    'X-Client-IP': {
      config: 'http-request set-header X-Client-IP %[src]\n--\n  server one 127.0.0.1:8000',
      sockets: true,
    },
    'a unique id': {
      config:
        'unique-id-format %[uuid()]\n  unique-id-header X-Unique-ID\n--\n  server one 127.0.0.1:8000',
      sockets: true,
    },
    'mode tcp': {
      config: 'mode tcp\n  server one 127.0.0.1:8000',
      sockets: true,
      without: 'hidden',
      named: 'forwards bytes',
    },
    'mode tcp and the PROXY protocol': {
      config: 'mode tcp\n  server one 127.0.0.1:8000 send-proxy',
      works: false,
    },
    'mode tcp and version 2 of the PROXY protocol': {
      config: 'mode tcp\n  server one 127.0.0.1:8000 send-proxy-v2',
      works: false,
    },
  },
  apache2: {
    'ProxyPass': {
      config: 'ProxyPass /agents/ http://127.0.0.1:8000/agents/ flushpackets=on',
    },
    'ProxyPass and ProxyPreserveHost': {
      config:
        'ProxyPreserveHost On\nProxyPass /agents/ http://127.0.0.1:8000/agents/ flushpackets=on',
    },
    'ProxyPass with upgrade=websocket': {
      config:
        'ProxyPass /agents/ http://127.0.0.1:8000/agents/ upgrade=websocket flushpackets=on',
      sockets: true,
    },
    'ProxyPass of ws: for the sockets': {
      config: `ProxyPass /agents/api/ws/ ws://127.0.0.1:8000/agents/api/ws/
        ProxyPass /agents/ http://127.0.0.1:8000/agents/ flushpackets=on`,
      sockets: true,
    },
    'RewriteRule to ws: for the sockets': {
      config: `RewriteEngine on
        RewriteCond %{HTTP:Upgrade} websocket [NC]
        RewriteCond %{HTTP:Connection} upgrade [NC]
        RewriteRule ^/?(.*) "ws://127.0.0.1:8000/$1" [P,L]
        ProxyPass /agents/ http://127.0.0.1:8000/agents/ flushpackets=on`,
      sockets: true,
    },
    'a balancer': {
      config: `<Proxy balancer://nodes>
        BalancerMember http://127.0.0.1:8000 flushpackets=on
        </Proxy>
        ProxyPass /agents/ balancer://nodes/agents/`,
    },
    'ProxyVia instead of the forwarding headers': {
      config: `ProxyVia Full
        ProxyAddHeaders Off
        ProxyPass /agents/ http://127.0.0.1:8000/agents/ flushpackets=on`,
    },
    'ProxyAddHeaders Off': {
      config: `ProxyAddHeaders Off
        ProxyPass /agents/ http://127.0.0.1:8000/agents/ flushpackets=on`,
      without: 'hidden',
      named: 'Apache with `ProxyAddHeaders Off`',
    },
  },
}

/** Sends a request as written, and resolves to the status of the answer. */
async function ask(port: number, head: readonly string[], body = ''): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    if (text.includes('\r\n\r\n')) socket.destroy()
  })
  socket.on('error', () => {})
  const length = body === '' ? [] : [`Content-Length: ${body.length}`]
  socket.write(`${[...head, ...length].join('\r\n')}\r\n\r\n${body}`)
  await once(socket, 'close')
  return Number(/^HTTP\/1\.\d (\d{3})/.exec(text)?.[1] ?? 0)
}

const START = '{"goal":"shell: true"}'
const JSON_TYPE = 'Content-Type: application/json'
/** Connection lines with which callers make proxies drop headers (RFC 9110, section 7.6.1). */
const DROPS =
  'Connection: close, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Server, X-Real-IP, Via'

/** The statuses of commands and of reads by a stranger who knows how the service decides. */
async function attack(port: number, upstream: number): Promise<[number[], number[]]> {
  const hosts = ['localhost', `127.0.0.1:${upstream}`, 'agents.example']
  const commands: number[] = []
  const reads: number[] = []
  for (const host of hosts) {
    const post = ['POST /agents/api/runs HTTP/1.1', `Host: ${host}`, JSON_TYPE]
    const get = ['GET /agents/api/runs HTTP/1.1', `Host: ${host}`]
    for (const more of [[], [DROPS], ['Connection: keep-alive'], ['User-Agent: curl/7.88.1']]) {
      commands.push(await ask(port, [...post, ...more], START))
      reads.push(await ask(port, [...get, ...more]))
    }
    const absolute = `http://${host}/agents/api/runs`
    commands.push(await ask(port, [`POST ${absolute} HTTP/1.1`, ...post.slice(1)], START))
    commands.push(await ask(port, [post[0]!, ...post.slice(1), 'Host: localhost'], START))
  }
  return [commands, reads]
}

/** The event stream of a run over WebSocket, to its end. */
function readSocket(port: number, id: string, seen: (event: Event) => void): Promise<Event[]> {
  const protocols = ['runwright.v1', `bearer.${Buffer.from(KEY).toString('base64url')}`]
  const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/api/ws/${id}`, protocols)
  const events: Event[] = []
  socket.on('message', (data) => {
    const event = JSON.parse(String(data)) as Event
    events.push(event)
    seen(event)
  })
  return new Promise((resolve, reject) => {
    socket.on('error', reject).on('close', () => resolve(events))
  })
}

async function worksWithKeys(t: TestContext, port: number, sockets: boolean): Promise<void> {
  const http = new AsyncClient({
    baseUrl: `http://127.0.0.1:${port}`,
    trustEnv: false,
    timeout: null, // the test has one
    headers: { authorization: `Bearer ${KEY}` },
  })
  t.after(() => http.close())
  const goal = { goal: 'shell: test -e never', hitl_enabled: true }
  const created = await http.post('/agents/api/runs', { json: goal })
  assert.equal(created.statusCode, 201, created.text)
  const { run_id: id } = created.json() as { run_id: string }
  let waiting = sockets ? 2 : 1
  const seen = ({ kind }: Event): void => {
    // A proxy that buffers would withhold the gate, and the run would never end.
    if (kind !== 'human_check_required' || --waiting > 0) return
    void http.post(`/agents/api/runs/${id}/resume`, { json: { decision: 'abort' } })
  }
  const socket = sockets ? readSocket(port, id, seen) : null
  const events = await readSse(http, `/agents/api/runs/${id}/events`, seen)
  assertWhole(events)
  if (socket !== null) assert.deepEqual(await socket, events)
  assert.equal((await http.post(`/agents/api/runs/${id}/retry`)).statusCode, 201)
  assert.equal((await http.delete(`/agents/api/runs/${id}`)).statusCode, 204)
}

const isDone = (status: number): boolean => status >= 200 && status < 300

for (const [proxy, recipes] of Object.entries(RECIPES) as [
  ProxyName,
  Readonly<Record<string, Recipe>>,
][]) {
  const skip = missing(proxy)
  for (const [name, recipe] of Object.entries(recipes)) {
    const { config, without = 'refused', named = '', sockets = false, works = true } = recipe
    test(`without keys ${proxy} with ${name}: ${without}`, { skip }, async (t) => {
      const upstream = await openService(t, {})
      const port = await startProxy(t, proxy, config, upstream)
      const [commands, reads] = await attack(port, upstream)
      const shown = `commands ${commands.join()}, reads ${reads.join()}`
      assert.equal(commands.some(isDone), without === 'hidden', shown)
      assert.equal(reads.some(isDone), without !== 'refused', shown)
      // What the guide says of it.
      assert.ok(guide.includes(named), `docs/mounting.md does not name it: ${named}`)
      assert.equal(named === '', without === 'refused')
    })
    if (!works) continue
    test(`with keys everything works behind ${proxy} with ${name}`, { skip }, async (t) => {
      const upstream = await openService(t, { authorize: bearerKeys({ ann: KEY }) })
      const port = await startProxy(t, proxy, config, upstream)
      await worksWithKeys(t, port, sockets)
    })
  }
}
