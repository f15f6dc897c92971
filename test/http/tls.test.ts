import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { AsyncClient, ConnectError, type AsyncClientOptions } from 'runwright/http'
import { listen, type Served } from '../helpers/serve.js'

const certs = fileURLToPath(new URL('../fixtures/http/certs/', import.meta.url))
const ca = join(certs, 'ca.pem')
const folder = mkdtempSync(join(tmpdir(), 'runwright-tls-'))
after(() => rmSync(folder, { recursive: true }))

function tlsServer(): Promise<Served> {
  const server = createServer(
    {
      cert: readFileSync(join(certs, 'server.pem')),
      key: readFileSync(join(certs, 'server-key.pem')),
      ca: readFileSync(ca),
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      const socket = request.socket as TLSSocket
      const peer = socket.getPeerCertificate()
      response.end(`${socket.authorized ? peer.subject.CN : 'nobody'} at ${(socket as { servername?: string }).servername}`)
    },
  )
  return listen(server as never, 'https')
}

for (const { name, options, works } of [
  { name: 'no certificate that is trusted', options: {}, works: false },
  { name: 'verify: false', options: { verify: false }, works: true },
  { name: 'verify: the path of a file', options: { verify: ca }, works: true },
  { name: 'verify: the path of a folder', options: { verify: certs }, works: true },
  { name: 'verify: options', options: { verify: { ca: readFileSync(ca, 'utf8') } }, works: true },
  { name: 'verify: another certificate', options: { verify: join(certs, 'client.pem') }, works: false },
] satisfies { name: string; options: AsyncClientOptions; works: boolean }[]) {
  test(`with ${name}, a private server is ${works ? 'reached' : 'refused'}`, async () => {
    await using server = await tlsServer()
    await using client = new AsyncClient(options)
    if (works) assert.match((await client.get(server.origin)).text, /^nobody/)
    else await assert.rejects(client.get(server.origin), ConnectError)
  })
}

for (const { name, cert } of [
  { name: 'two files', cert: { cert: join(certs, 'client.pem'), key: join(certs, 'client-key.pem') } },
  {
    name: 'an encrypted key',
    cert: { cert: join(certs, 'client.pem'), key: join(certs, 'client-key-encrypted.pem'), passphrase: 'hush' },
  },
  {
    name: 'PEM text',
    cert: {
      cert: readFileSync(join(certs, 'client.pem'), 'utf8'),
      key: readFileSync(join(certs, 'client-key.pem'), 'utf8'),
    },
  },
]) {
  test(`a client certificate is shown: ${name}`, async () => {
    await using server = await tlsServer()
    await using client = new AsyncClient({ verify: ca, cert })
    assert.match((await client.get(server.origin)).text, /^client\.test/)
  })
}

test('sniHostname is the name that TLS sends and checks', async () => {
  await using server = await tlsServer()
  await using client = new AsyncClient({ verify: ca })
  const extensions = { sniHostname: 'server.test' }
  assert.equal((await client.get(server.origin, { extensions })).text, 'nobody at server.test')
  const wrong = { sniHostname: 'other.test' }
  await assert.rejects(client.get(server.origin, { extensions: wrong }), /other\.test/)
})

test('the environment names certificates and the key log, unless it is not trusted', async () => {
  const log = join(folder, 'keys.log')
  process.env['SSL_CERT_FILE'] = ca
  process.env['SSLKEYLOGFILE'] = log
  try {
    await using server = await tlsServer()
    await using client = new AsyncClient()
    assert.match((await client.get(server.origin)).text, /^nobody/)
    assert.match(readFileSync(log, 'utf8'), /^(SERVER|CLIENT)_/)
    await using apart = new AsyncClient({ trustEnv: false })
    await assert.rejects(apart.get(server.origin), ConnectError)
  } finally {
    delete process.env['SSL_CERT_FILE']
    delete process.env['SSLKEYLOGFILE']
  }
})

test('a file that is not there is named at construction', () => {
  assert.throws(() => new AsyncClient({ verify: '/nowhere/ca.pem' }), /verify: .*\/nowhere\/ca\.pem/)
})
