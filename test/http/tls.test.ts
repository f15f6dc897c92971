import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AsyncClient, Client, ConnectError } from 'runwright/http'
import { behaviour, failure, testCa as ca, useApp, type AnyClientOptions } from './both-clients.js'

const certs = fileURLToPath(new URL('../fixtures/http/certs/', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'runwright-tls-'))
after(() => rmSync(folder, { recursive: true }))

useApp()

for (const { name, options, works } of [
  { name: 'no trusted certificate', options: {}, works: false },
  { name: 'verify: false', options: { verify: false }, works: true },
  { name: 'verify: the path of a file', options: { verify: ca }, works: true },
  { name: 'verify: the path of a folder', options: { verify: certs }, works: true },
  {
    name: 'verify: PEM as text',
    options: { verify: { ca: readFileSync(ca, 'utf8') } },
    works: true,
  },
  { name: 'verify: PEM as bytes', options: { verify: { ca: [readFileSync(ca)] } }, works: true },
  {
    name: 'verify: rejectUnauthorized false',
    options: { verify: { rejectUnauthorized: false } },
    works: true,
  },
  {
    name: 'verify: one version of TLS',
    options: { verify: { ca: readFileSync(ca), minVersion: 'TLSv1.3' } },
    works: true,
  },
  {
    name: 'verify: another certificate',
    options: { verify: join(certs, 'client.pem') },
    works: false,
  },
] satisfies { name: string; options: AnyClientOptions; works: boolean }[]) {
  behaviour(
    `with ${name}, a private server is ${works ? 'reached' : 'refused'}`,
    async ({ make, secureOrigin }) => {
      const client = make({ ...options, baseUrl: secureOrigin })
      if (works) assert.match((await client.get('/peer')).text, /^nobody/)
      else assert.ok((await failure(() => client.get('/peer'))) instanceof ConnectError)
    },
  )
}

for (const { name, cert } of [
  {
    name: 'two files',
    cert: { cert: join(certs, 'client.pem'), key: join(certs, 'client-key.pem') },
  },
  {
    name: 'an encrypted key',
    cert: {
      cert: join(certs, 'client.pem'),
      key: join(certs, 'client-key-encrypted.pem'),
      passphrase: 'hush',
    },
  },
  {
    name: 'PEM text',
    cert: {
      cert: readFileSync(join(certs, 'client.pem'), 'utf8'),
      key: readFileSync(join(certs, 'client-key.pem'), 'utf8'),
    },
  },
]) {
  behaviour(`a client certificate is presented: ${name}`, async ({ make, secureOrigin }) => {
    const client = make({ verify: ca, cert, baseUrl: secureOrigin })
    assert.match((await client.get('/peer')).text, /^client\.test/)
  })
}

behaviour('sniHostname is the name that TLS sends and verifies', async ({ make, secureOrigin }) => {
  const client = make({ verify: ca, baseUrl: secureOrigin })
  const extensions = { sniHostname: 'server.test' }
  assert.equal((await client.get('/peer', { extensions })).text, 'nobody at server.test')
  const wrong = await failure(() =>
    client.get('/peer', { extensions: { sniHostname: 'other.test' } }),
  )
  assert.ok(wrong instanceof ConnectError)
  assert.match(wrong.message, /other\.test/)
})

/** Runs `show` with these environment variables set, and deletes them. */
async function withEnvironment(
  variables: Record<string, string>,
  show: () => Promise<void>,
): Promise<void> {
  Object.assign(process.env, variables)
  try {
    await show()
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name]
  }
}

behaviour(
  'SSL_CERT_FILE, SSL_CERT_DIR and SSLKEYLOGFILE apply unless trustEnv is false',
  async ({ make, secureOrigin }) => {
    const trusted = mkdtempSync(join(folder, 'trusted-'))
    copyFileSync(ca, join(trusted, '9d66eef0.0'))
    mkdirSync(join(trusted, 'below'))
    const log = join(trusted, 'keys.log')
    for (const variables of [{ SSL_CERT_FILE: ca }, { SSL_CERT_DIR: trusted }]) {
      await withEnvironment({ ...variables, SSLKEYLOGFILE: log }, async () => {
        assert.match((await make({ baseUrl: secureOrigin }).get('/peer')).text, /^nobody/)
        assert.match(readFileSync(log, 'utf8'), /^(SERVER|CLIENT)_/)
        rmSync(log)
        const apart = make({ trustEnv: false, baseUrl: secureOrigin })
        assert.ok((await failure(() => apart.get('/peer'))) instanceof ConnectError)
        assert.throws(() => readFileSync(log), { code: 'ENOENT' })
        const explicit = make({ verify: join(certs, 'client.pem'), baseUrl: secureOrigin })
        assert.ok((await failure(() => explicit.get('/peer'))) instanceof ConnectError)
      })
    }
    await withEnvironment({ SSL_CERT_FILE: '/nowhere/ca.pem' }, async () => {
      const error = await failure(() => make({ baseUrl: secureOrigin }))
      assert.match(error.message, /SSL_CERT_FILE.*\/nowhere\/ca\.pem/)
    })
  },
)

test('a missing file is named at construction', () => {
  for (const make of [AsyncClient, Client]) {
    assert.throws(() => new make({ verify: '/nowhere/ca.pem' }), /verify: .*\/nowhere\/ca\.pem/)
    const cert = { cert: ca, key: '/nowhere/key.pem' }
    assert.throws(() => new make({ cert }), /cert\.key: .*\/nowhere\/key\.pem/)
  }
})
