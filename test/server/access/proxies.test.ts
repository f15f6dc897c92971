import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signOfProxy } from '../../../lib/server/access/origin.js'
import { RawPeer } from '../../helpers/raw-peer.js'
import { FakeEngine } from '../fake-engine.js'
import { openService } from '../open-service.js'

/** A request as Node presents it; `lines` as sent. */
function requestOf(lines: readonly string[], url = '/api/runs') {
  const fields = lines.map((line) => line.split(/: ?/s, 2) as [string, string])
  return {
    url,
    httpVersion: '1.1',
    headers: Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value])),
    rawHeaders: fields.flat(),
    socket: { remoteAddress: '127.0.0.1' },
  }
}

const JSON_TYPE = 'Content-Type: application/json'

/** Header sections as these programs send them, recorded from the programs themselves. */
const CALLERS: Readonly<Record<string, readonly string[]>> = {
  'curl': ['Host: localhost:8000', 'User-Agent: curl/7.88.1', 'Accept: */*'],
  'curl with a body': [
    'Host: localhost:8000',
    'User-Agent: curl/7.88.1',
    'Accept: */*',
    'content-type: application/json',
    'Content-Length: 2',
  ],
  'curl that closes': [
    'Host: localhost:8000',
    'User-Agent: curl/7.88.1',
    'Accept: */*',
    'Connection: close',
  ],
  'curl --http2': [
    'Host: localhost:8000',
    'User-Agent: curl/7.88.1',
    'Accept: */*',
    'Connection: Upgrade, HTTP2-Settings',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
  ],
  'fetch of Node': [
    'host: localhost:8000',
    'connection: keep-alive',
    'content-type: application/json',
    'accept: */*',
    'accept-language: *',
    'sec-fetch-mode: cors',
    'user-agent: node',
    'accept-encoding: gzip, deflate',
    'content-length: 2',
  ],
  'undici that closes': ['host: localhost:8000', 'connection: close', 'accept: */*'],
  'node:http': ['Host: localhost:8000', 'Connection: keep-alive'],
  'node:http without keep-alive': ['Host: localhost:8000', 'Connection: close'],
  'node:http without keep-alive, with a body': [
    'Host: localhost:8000',
    'Connection: close',
    'Content-Length: 2',
  ],
  'node:http without keep-alive, with a stream': [
    'Host: localhost:8000',
    'Connection: close',
    'Transfer-Encoding: chunked',
  ],
  'node:http without keep-alive, with a type': [
    JSON_TYPE,
    'Host: localhost:8000',
    'Connection: close',
    'Content-Length: 2',
  ],
  'node:http without keep-alive, with a type set later': [
    'Host: localhost:8000',
    JSON_TYPE,
    'Connection: close',
    'Content-Length: 2',
  ],
  'node:http that is told to close': ['Connection: close', JSON_TYPE, 'Host: localhost:8000'],
  'node-fetch': [
    'Accept: */*',
    'User-Agent: node-fetch/1.0',
    'Accept-Encoding: gzip,deflate',
    'Connection: close',
    'Host: localhost:8000',
  ],
  'urllib': [
    'Accept-Encoding: identity',
    'Content-Length: 2',
    'Host: localhost:8000',
    'User-Agent: Python-urllib/3.11',
    JSON_TYPE,
    'Connection: close',
  ],
  'urllib without a body': [
    'Accept-Encoding: identity',
    'Host: localhost:8000',
    'User-Agent: Python-urllib/3.11',
    'Connection: close',
  ],
  'http.client': [
    'Host: localhost:8000',
    'Accept-Encoding: identity',
    'Content-Length: 2',
    'Connection: close',
  ],
  'requests': [
    'Host: localhost:8000',
    'User-Agent: python-requests/2.34.2',
    'Accept-Encoding: gzip, deflate',
    'Accept: */*',
    'Connection: keep-alive',
    'Content-Length: 2',
    JSON_TYPE,
  ],
  'wget': [
    'Host: localhost:8000',
    'User-Agent: Wget/1.21.3',
    'Accept: */*',
    'Accept-Encoding: identity',
    'Connection: Keep-Alive',
  ],
  'HttpClient of Java': [
    'Connection: Upgrade, HTTP2-Settings',
    'Content-Length: 0',
    'Host: localhost:8000',
    'HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA',
    'Upgrade: h2c',
    'User-Agent: Java-http-client/17.0.15',
  ],
  'HttpURLConnection': [
    'User-Agent: Java/17.0.15',
    'Host: localhost:8000',
    'Accept: text/html, image/gif, image/jpeg, */*; q=0.2',
    'Connection: keep-alive',
  ],
  // Written down from their sources.
  'net/http of Go': [
    'Host: localhost:8000',
    'User-Agent: Go-http-client/1.1',
    'Content-Length: 2',
    JSON_TYPE,
    'Accept-Encoding: gzip',
  ],
  'net/http of Go that closes': [
    'Host: localhost:8000',
    'User-Agent: Go-http-client/1.1',
    'Connection: close',
    'Accept-Encoding: gzip',
  ],
  'Chromium': [
    'Host: localhost:8000',
    'Connection: keep-alive',
    'Content-Length: 2',
    'sec-ch-ua: "Chromium";v="140"',
    'User-Agent: Mozilla/5.0',
    JSON_TYPE,
    'Accept: application/json',
    'Origin: http://localhost:8000',
    'Sec-Fetch-Site: same-origin',
    'Sec-Fetch-Mode: cors',
    'Sec-Fetch-Dest: empty',
  ],
  'WebSocket of Chromium': [
    'Host: localhost:8000',
    'Connection: Upgrade',
    'Pragma: no-cache',
    'Upgrade: websocket',
    'Origin: http://localhost:8000',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ],
  'websockets for Python': [
    'Host: localhost:8000',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
  ],
  'ws': [
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Host: localhost:8000',
  ],
  'a traced program': [
    'Host: localhost:8000',
    'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    'X-Request-Id: 1',
    'X-Correlation-Id: 1',
    'X-B3-TraceId: 1',
    'X-Requested-With: XMLHttpRequest',
    'X-Api-Key: 1',
    'X-Amz-Date: 1',
    'X-HTTP-Method-Override: PATCH',
    'X-Auth-Token: 1',
    'X-Goog-Api-Key: 1',
    'X-MS-Version: 1',
    'X-MS-Client-Request-Id: 1',
    'X-Csrf-Token: 1',
    'X-Do-Not-Track: 1',
    'X-Stainless-Lang: js',
    'Mcp-Session-Id: 1',
    'Idempotency-Key: 1',
    'Origin: http://localhost:8000',
  ],
}

for (const [name, lines] of Object.entries(CALLERS)) {
  test(`${name} on this machine does not look like a proxy`, () => {
    assert.equal(signOfProxy(requestOf(lines)), null)
  })
}

for (const name of [
  ...['Forwarded', 'Via', 'X-Forwarded', 'X-Forwarded-For', 'X-Forwarded-Anything'],
  ...['X-Forward-For', 'X-Real-IP', 'X-Original-URL', 'X-Originating-IP', 'X-Client-IP'],
  ...['Client-IP', 'True-Client-IP', 'X-Cluster-Client-IP', 'X-Remote-Addr', 'X-Host', 'X-Scheme'],
  ...['X-ProxyUser-Ip', 'Proxy-Connection', 'X-Proxy-Id', 'X-Nginx-Proxy', 'X-Accel-Internal'],
  ...['X-Envoy-External-Address', 'X-Traefik-Request', 'X-Varnish', 'X-ARR-LOG-ID', 'X-SSL-CERT'],
  ...['WL-Proxy-Client-IP', 'X-BlueCoat-Via', 'Surrogate-Capability', 'Early-Data', 'Client-Cert'],
  ...['CDN-Loop', 'CF-Ray', 'CF-Connecting-IP', 'Fastly-Client-IP', 'Akamai-Origin-Hop'],
  ...['X-Amzn-Trace-Id', 'X-Amz-Cf-Id', 'X-Azure-Ref', 'X-Cloud-Trace-Context', 'X-Appengine-Https'],
  ...['Fly-Client-IP', 'X-Vercel-Id', 'Ngrok-Skip-Browser-Warning', 'Tailscale-User-Login'],
  // General forms, as servers and frameworks read them.
  ...['X-Http-Forwarded-For', 'HTTP-X-Forwarded-For', 'Forwarded-For-Ip', 'Z-Forwarded-For'],
  ...['X-Forwarder-For', 'X-Proxied-By', 'X-Coming-From', 'Coming-From', 'X-Rewrite-URL'],
  ...['X-Original-URI', 'X-HTTP-DestinationURL', 'Source-IP', 'X-Server-IP', 'X-Remote-User'],
  ...['X-Backend-Host', 'X-Gateway-Id', 'X-Ingress-Path', 'X-Edge-Location', 'X-Geo-Country'],
  ...['X-Country-Code', 'X-Tunnel-Id', 'X-Script-Name', 'X-Port', 'X-Proto', 'X-Forwarded_Host'],
  // Proxies and gateways.
  ...['NS-Client-IP', 'CUDA-CLIIP', 'X-Kong-Request-Id', 'X-Consumer-Username', 'X-Tyk-Node'],
  ...['X-Auth-Request-Groups', 'Sm_User', 'X-Passenger-Client-Address', 'X-Middleware-Rewrite'],
  ...['X-From-Where', 'X-Pagekite-Port', 'Bypass-Tunnel-Reminder', 'X-Hass-Source'],
  // Platforms and CDNs.
  ...['DO-Connecting-IP', 'CF-Connecting_IP', 'CF-Pseudo-IPv4', 'Oxygen-Buyer-IP', 'X-Nf-Geo'],
  ...['CloudFront-Viewer-Address', 'X-Azure-SocketIP', 'X-WAWS-Unencoded-URL', 'Ali-Cdn-Real-Ip'],
  ...['X-MS-Client-Principal-Name', 'MS-ASPNETCORE-TOKEN', 'X-Goog-Authenticated-User-Email'],
  ...['Cdn77-Request-Id', 'X-Daa-Tunnel', 'X-Qvia', 'X-Bfe-Svbbrers', 'X-Vcap-Request-Id'],
  ...['X-Qihoo-IP', 'X-Sucuri-ClientIP', 'X-Appengine-User-IP', 'Akamai-Client-IP'],
]) {
  test(`without authorize the header ${name} is a sign of a proxy`, () => {
    const lines = ['Host: localhost', `${name}: 1`]
    assert.match(String(signOfProxy(requestOf(lines))), new RegExp(`header ${name} `, 'i'))
  })
}

const HOST = 'Host: 127.0.0.1:8000'
/** Header sections that nginx sends, with what its caller adds below them. */
const RELAYED: Readonly<Record<string, readonly string[]>> = {
  'Connection "upgrade"': ['Connection: upgrade', HOST],
  'Connection "Upgrade" below Host': [HOST, 'Connection: Upgrade', 'Accept: */*'],
  'Connection "upgrade" and more': [HOST, 'Accept: */*', 'Connection: keep-alive , Upgrade'],
  '$connection_upgrade': ['Connection: close', HOST],
  '$connection_upgrade, with a body': ['Connection: close', HOST, 'Content-Length: 2', JSON_TYPE],
  '$connection_upgrade for a WebSocket': ['Upgrade: websocket', 'Connection: upgrade', HOST],
  'the Connection of HTTP/1.1': [HOST, 'Connection: close', 'Content-Length: 2', JSON_TYPE],
  'the Connection of HTTP/1.1 without a body': [HOST, 'Connection: close', 'Accept: */*'],
}

for (const [name, lines] of Object.entries(RELAYED)) {
  test(`a request that nginx sends with ${name} is a sign of a proxy`, () => {
    assert.match(String(signOfProxy(requestOf(lines))), /^Connection: .* comes from a proxy$/)
  })
}

test('a target with a scheme and HTTP/1.0 are signs of a proxy', () => {
  assert.match(String(signOfProxy(requestOf([HOST], 'http://localhost/api/runs'))), /target/)
  const mounted = { ...requestOf([HOST], '/api/runs'), originalUrl: 'HTTP://localhost/a/api/runs' }
  assert.match(String(signOfProxy(mounted)), /target/)
  assert.match(String(signOfProxy({ ...requestOf([HOST]), httpVersion: '1.0' })), /HTTP\/1\.0/)
})

for (const [preface, status] of [
  ['PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n', 400],
  ['\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02', 400],
  ['', 403],
] as const) {
  test(`a proxied POST after the preface ${JSON.stringify(preface)} is ${status}`, async () => {
    const engine = new FakeEngine()
    await using opened = await openService({ engine })
    using peer = await RawPeer.connect(opened.port)
    const body = '{"goal":"shell: true"}'
    const head = [`Connection: upgrade`, HOST, `Content-Length: ${body.length}`, JSON_TYPE]
    const post = `POST /api/runs HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`
    peer.write(Buffer.from(`${preface}${post}`, 'latin1'))
    const answer = await peer.takeUntil('\r\n\r\n')
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
    assert.deepEqual(engine.calls, [])
  })
}

test('a header of a proxy counts also if a framework has removed it', () => {
  const request = requestOf([HOST, 'X-Forwarded-For: 203.0.113.7'])
  delete (request.headers as Record<string, unknown>)['x-forwarded-for']
  assert.match(String(signOfProxy(request)), /^the header x-forwarded-for /)
})
