/** Uploads, downloads, redirects, cookies and Digest authentication, with a local server. */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AsyncClient, DigestAuth } from 'runwright/http'

const realm = 'realm="files", nonce="once", qop="auth", algorithm=SHA-256'
const server = createServer((request, response) => {
  if (request.url === '/upload') {
    let bytes = 0
    request.on('data', (chunk: Buffer) => (bytes += chunk.length))
    request.on('end', () =>
      response.end(`${request.headers['content-type']?.split(';')[0]}, ${bytes} bytes`),
    )
  } else if (request.url === '/latest') {
    response
      .writeHead(302, { location: '/files/1', 'set-cookie': 'seen=latest; Path=/; HttpOnly' })
      .end()
  } else if (request.url === '/files/1') {
    response.setHeader('x-cookie', request.headers.cookie ?? '')
    response.end('x'.repeat(100_000))
  } else if (request.headers.authorization === undefined) {
    response.writeHead(401, { 'www-authenticate': `Digest ${realm}` }).end()
  } else {
    response.end(/username="ann"/.test(request.headers.authorization) ? 'hello ann' : 'who?')
  }
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const { port } = server.address() as AddressInfo
const folder = await mkdtemp(join(tmpdir(), 'runwright-example-'))

{
  await using client = new AsyncClient({
    baseUrl: `http://127.0.0.1:${port}`,
    followRedirects: true,
  })

  // Upload: a form with a file, sent while it is read.
  const path = join(folder, 'report.txt')
  await writeFile(path, 'all is well\n'.repeat(1_000))
  const file = await open(path)
  const sent = await client.post('/upload', {
    data: { title: 'Report' },
    files: { report: ['report.txt', file, 'text/plain'] },
  })
  await file.close()
  console.log('up:', sent.text)

  // Download: after a redirect that sets a cookie, into a file, never completely in memory.
  await using answer = await client.stream('GET', '/latest')
  const target = join(folder, 'latest.bin')
  await pipeline(answer.iterBytes(), createWriteStream(target))
  console.log(
    'down:',
    (await stat(target)).size,
    'bytes over',
    answer.history.length,
    'redirect, with',
    answer.headers.get('x-cookie'),
  )
  console.log(
    'sha256:',
    createHash('sha256')
      .update(await readFile(target))
      .digest('hex')
      .slice(0, 16),
  )

  const hello = await client.get('/private', { auth: new DigestAuth('ann', 'secret') })
  console.log('digest:', hello.text)
}
await rm(folder, { recursive: true })
server.close()
