import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearerKeys, type LogLine } from 'runwright/server'
import { RawPeer } from '../helpers/raw-peer.js'
import { openReal, type Real } from './real.js'

const COUNT = Number(process.env['RUNWRIGHT_FUZZ_REQUESTS'] ?? 2_000)
const SEED = Number(process.env['RUNWRIGHT_FUZZ_SEED'] ?? 1)
const KEY = 'fuzz-key-0123456789'

/** A seeded random generator (mulberry32). */
function generator(seed: number): <T>(list: readonly T[]) => T {
  let state = seed
  return (list) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return list[((mixed ^ (mixed >>> 14)) >>> 0) % list.length]!
  }
}

const METHODS = 'GET GET GET POST POST POST HEAD DELETE PUT PATCH OPTIONS TRACE PROPFIND'.split(' ')

const PATHS = [
  '/',
  ...Array<string>(12).fill('/api/runs'),
  '/api/runs/{run}',
  '/api/runs/{run}/events',
  '/api/runs/{run}/resume',
  '/api/runs/{run}/abort',
  '/api/runs/{run}/retry',
  '/api/runs/{run}/checkpoints',
  '/api/runs/{run}/changes',
  '/api/runs/{run}/restore',
  '/api/runs/{run}/apply',
  '/api/runs/{run}/discard',
  '/api/runs/{run}/fork',
  '/api/runs/{run}/messages',
  '/api/runs/{run}/files',
  '/api/runs/{run}/files/ok',
  '/api/runs/{run}/files/file',
  '/api/runs/{run}/files/out/x',
  '/api/runs/{run}/files/%2e%2e/%2e%2e/etc/passwd',
  '/api/runs/{run}/files/..%2f..%2fetc%2fpasswd',
  '/api/runs/{run}/files/%00',
  '/api/runs/{run}/files/%ff%fe',
  '/api/runs/{run}/files/%',
  '/api/runs/{run}/files//',
  '/api/runs/{run}/files/__proto__',
  `/api/runs/{run}/files/${'a/'.repeat(3_000)}b`,
  '/api/ws/{run}',
  '/api/ws/',
  '/api/models',
  '/api/goals',
  '/api/health',
  '/api/openapi.json',
  '/api/asyncapi.json',
  '/runwright/app.js',
  '/runwright/..%2f',
  '/api/runs/%ff',
  '/api/runs/%00',
  '/api/runs/%2e%2e/%2e%2e',
  '/api%2fruns',
  '/%61pi/runs',
  '/api/runs/{run}%00',
  '/api/runs/{run}%2fevents',
  '/api/ws/%7brun%7d',
  '/api/ws/{run}%3Fafter=1',
  '/metrics',
  '/api/runs;x=y',
  '/api/./runs',
  '/api/runs/{run}/events/',
  '/%',
  '//',
  '/api/runs/..',
  '*',
  'http://x/api/runs',
  `/api/runs/${'a'.repeat(5_000)}`,
]

const QUERIES = [
  '',
  '',
  '',
  '?',
  '?limit=1',
  '?limit=-1',
  '?limit=9999999999999999999',
  '?cursor=x',
  '?cursor=%00',
  '?after=1',
  '?after=-1',
  '?after=99999',
  '?kinds=log,,',
  '?deltas=1',
  '?deltas=2',
  '?deltas=1&deltas=0',
  '?kinds=log,run_end',
  '?status=%ff',
  '?status=achieved&status=failed',
  '?created_after=2026-13-01T00:00:00Z',
  '?created_after=2026-01-01T00:00:00Z&limit=2',
  '?goal=%',
  '?&&=&=x',
  '?at=now',
  '?at=start',
  '?at=../../etc',
  '?from=start&to=now',
  '?from=newest&to=start',
  `?from=${'a'.repeat(64)}`,
  '?to=__proto__',
  '?__proto__=1',
]

const TYPES = [
  ...Array<string>(6).fill('Content-Type: application/json'),
  'Content-Type: application/json; charset=latin1',
  'Content-Type: text/plain',
  'X-Nothing: at all',
]

const UPGRADE = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13'

const HEADERS = [
  'Accept: text/event-stream',
  'Accept: application/json',
  'Accept: text/x-diff',
  'Accept: ;;q=,',
  'Origin: http://evil.example',
  'Origin: null',
  'Content-Encoding: gzip',
  'Last-Event-ID: 1',
  'Last-Event-ID: x',
  'If-None-Match: *',
  'If-None-Match: "a',
  'Idempotency-Key: k',
  'Idempotency-Key: \xff',
  'X-Forwarded-For: 1',
  `${UPGRADE}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==`,
  UPGRADE,
  'Upgrade: h2c\r\nConnection: Upgrade',
  'Sec-WebSocket-Protocol: runwright.v1, bearer.x',
  'Sec-WebSocket-Protocol: ,,',
  'Expect: 100-continue',
  'TE: trailers',
  'Range: bytes=0-1',
]

const BODIES = [
  '',
  '{}',
  '[]',
  'null',
  '"x"',
  '{',
  '\xff\xfe',
  ...Array<string>(8).fill('{"goal":"shell: true"}'),
  '{"goal":1}',
  '{"goal":"auto"}',
  '{"goal":"shell:"}',
  '{"goal":"perf: x < y"}',
  '{"goal":"\\ud800"}',
  '{"goal":"shell: true","cwd":"\\u0000"}',
  '{"goal":"shell: true","cwd":"../.."}',
  '{"goal":"shell: true","max_seconds":1e308}',
  '{"goal":"shell: true","model_name":"test:"}',
  '{"goal":"shell: true","model_name":"__proto__:x"}',
  '{"goal":"shell: true","metadata":{"a":"b","__proto__":"c"}}',
  '{"decision":"approve"}',
  '{"decision":"abort","gate_id":""}',
  '{"decision":"reject","edits":{"__proto__":{}}}',
  '0'.repeat(10_000),
  `{"checkpoint_id":"${'a'.repeat(64)}"}`,
  `{"checkpoint_id":"${'a'.repeat(64)}","force":true}`,
  '{"checkpoint_id":{}}',
  '{"dry_run":true}',
  '{"paths":["../../etc/passwd"],"force":true}',
  '{"paths":["\\ud800",""]}',
  '{"text":"hello"}',
  '{"text":"","deliver":"never"}',
  '{"at":"start","message":"again"}',
  '{"at":{"iteration":1e99}}',
  '{"at":{"seq":1},"workspace":"isolated"}',
  '{"at":{"__proto__":1}}',
]

/** Sends one request and reads its response; a hang is left to the test's time-out. */
async function send({ port }: Real, bytes: string): Promise<string> {
  using peer = await RawPeer.connect(port)
peer.write(bytes)
  let head = await peer.takeUntil('\r\n\r\n')
  while (head.startsWith('HTTP/1.1 100 ')) head = await peer.takeUntil('\r\n\r\n')
  // An open stream ends with the run; other connections end because the request asks for it.
  if (head.startsWith('HTTP/1.1 101 ') || head.includes('text/event-stream')) return head
  return head + (await peer.takeAll()).toString('latin1')
}

for (const withKeys of [false, true]) {
  const name = withKeys ? 'with keys' : 'without authorize'
  test(
    `whatever is sent ${name}, nothing hangs, breaks or tells a secret`,
    { timeout: 120_000 },
    async (t) => {
      const authorize = withKeys ? bearerKeys({ fuzz: KEY }) : undefined
      const lines: LogLine[] = []
      const real = await openReal(t, {
        service: {
          authorize,
          metrics: true,
          onLog: (line) => lines.push(line),
          limits: { openStreams: 100_000, concurrentRequests: 1_000 },
        },
      })
      const pick = generator(SEED)
      const key = withKeys ? { authorization: `Bearer ${KEY}` } : {}
      const seen = new Set<string>()
      const { json } = await real.call('POST', '/api/runs', {
        body: { goal: 'shell: true' },
        headers: key,
      })
      for (let i = 0; i < COUNT / 2; i++) {
        const body = pick(BODIES)
        const lines = [
          `${pick(METHODS)} ${pick(PATHS).replace('{run}', json.run_id)}${pick(QUERIES)} HTTP/1.1`,
          `Host: 127.0.0.1:${real.port}`,
          `Content-Length: ${body.length}`,
          pick(TYPES),
          ...pick([[], [1], [1, 2]]).map(() => pick(HEADERS)),
          ...(withKeys ? [`Authorization: Bearer ${KEY}`] : []),
          'Connection: close',
        ]
        const answer = await send(real, `${lines.join('\r\n')}\r\n\r\n${body}`)
        const told = `request ${i} of seed ${SEED}: ${lines.join(' | ')}`
        assert.doesNotMatch(answer, /^HTTP\/1\.1 5/, told)
        assert.ok(!answer.includes(KEY), told)
        seen.add(answer.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length))
      }
      assert.deepEqual(real.errors, [])
      assert.ok(lines.length > COUNT / 4)
      assert.ok(!JSON.stringify(lines).includes(KEY), 'a line of the log holds the key')
      // The requests must reach different outcomes, or the test would prove little.
      for (const status of ['200', '201', '400', '404', '405', '415', '422']) {
        assert.ok(seen.has(status), `no ${status} among ${[...seen].sort().join(', ')}`)
      }
      assert.equal((await real.call('GET', '/api/health')).status, 200)
    },
  )
}
