import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AsyncClient, Client } from 'runwright/http'
import { freePort, missing, startProgram } from '../programs.js'

// Real servers that answer before they have read an upload, and close or not.

const certs = fileURLToPath(new URL('../../fixtures/http/certs/', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'runwright-early-'))
chmodSync(folder, 0o755)
for (const name of ['server.pem', 'server-key.pem'])
  copyFileSync(join(certs, name), join(folder, name))
const children: ChildProcess[] = []

after(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const SIZES = [300_000, 3_000_000, 50_000_000]
const TIMES = 5

function* pieces(size: number): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < size; at += 64_000) yield new Uint8Array(Math.min(64_000, size - at))
}

/**
 * Posts bodies of all sizes and shapes with both clients; each call must give `status`. If `fresh`,
 * each has a connection of its own: a server that closes after an answer could meet the next
 * request on it, with a body that cannot be sent again.
 */
async function postAll(
  baseUrl: string,
  { http2 = false, fresh = false, status = 413 },
): Promise<void> {
  const options = {
    baseUrl,
    http2,
    http1: !http2 || baseUrl.startsWith('https:'),
    verify: join(certs, 'ca.pem'),
    timeout: 60_000,
  }
  const wrong: string[] = []
  for (const Kind of [AsyncClient, Client]) {
    let client = new Kind(options)
    for (const size of SIZES) {
      for (let time = 0; time < 2 * TIMES; time++) {
        const content = time % 2 === 0 ? new Uint8Array(size) : pieces(size)
        const headers = { 'content-length': String(size) }
        try {
          const response = await client.post('/', { content, headers })
          if (response.statusCode !== status) wrong.push(`${size}: ${response.statusCode}`)
        } catch (error) {
          wrong.push(`${Kind.name}, ${size} bytes: ${String(error)}`)
        }
        if (!fresh) continue
        await client.close()
        client = new Kind(options)
      }
    }
    await client.close()
  }
  assert.deepEqual(wrong, [])
}

test("Python's http.server refuses a POST with 501", { skip: missing('python3') }, async () => {
  const port = await freePort()
  const args = ['-m', 'http.server', '--bind', '127.0.0.1', '--directory', folder, String(port)]
  children.push(await startProgram('python3', args, port))
  await postAll(`http://127.0.0.1:${port}`, { status: 501 })
})

test('nginx refuses a body that is too large with 413', { skip: missing('nginx') }, async () => {
  const [port, tlsPort] = [await freePort(), await freePort()]
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr;
    events {}
    http {
      access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
      fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi;
      scgi_temp_path ${folder}/scgi; client_max_body_size 100k;
      server {
        listen 127.0.0.1:${port}; listen 127.0.0.1:${tlsPort} ssl http2;
        ssl_certificate ${folder}/server.pem; ssl_certificate_key ${folder}/server-key.pem;
        root ${folder};
      }
    }`,
  )
  children.push(await startProgram('nginx', ['-e', 'stderr', '-c', config], port))
  await postAll(`http://127.0.0.1:${port}`, {})
  await postAll(`https://localhost:${tlsPort}`, {})
  await postAll(`https://localhost:${tlsPort}`, { http2: true })
})

for (const [what, fresh, after413] of [
  // The answer of HTTP/2 is written after its callback.
  ['and closes', true, "response.end('no', () => setTimeout(() => request.socket.destroy(), 20))"],
  ['and goes on', false, "response.end('no')"],
] as const) {
  test(`node:http and node:http2 answer 413 at once ${what}`, async () => {
    const [port, port2] = [await freePort(), await freePort()]
    const program = `
      const listener = (request, response) => {
        response.statusCode = 413
        ${after413.replace('request.socket', '(request.stream?.session ?? request.socket)')}
      }
      require('node:http').createServer(listener).listen(${port}, '127.0.0.1', () =>
        require('node:http2').createServer(listener).listen(${port2}, '127.0.0.1'))`
    children.push(await startProgram(process.execPath, ['-e', program], port2))
    await postAll(`http://127.0.0.1:${port}`, { fresh })
    await postAll(`http://127.0.0.1:${port2}`, { http2: true, fresh })
  })
}
