import assert from 'node:assert/strict'
import { spawnSync, type ChildProcess } from 'node:child_process'
import { copyFileSync, chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AsyncClient, Client, type AsyncClientOptions, type ClientOptions } from 'runwright/http'
import { freePort, missing, startProgram } from '../programs.js'

// Real servers, from the Debian packages nginx, nghttp2-server, tinyproxy, squid, microsocks and
// dante-server.

const certs = fileURLToPath(new URL('../../fixtures/http/certs/', import.meta.url))
const verify = join(certs, 'ca.pem')
const folder = mkdtempSync(join(tmpdir(), 'runwright-peers-'))
chmodSync(folder, 0o755)
const children: ChildProcess[] = []
const text = 'the quick brown fox jumps over the lazy dog\n'.repeat(2000)

after(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a program that is killed after the tests. */
async function start(binary: string, args: readonly string[], port: number): Promise<void> {
  children.push(await startProgram(binary, args, port))
}

/** A password hash in the format of squid's helper. */
function md5Password(password: string): string {
  return spawnSync('openssl', ['passwd', '-apr1', password], { encoding: 'utf8' }).stdout.trim()
}

/** Calls `show` with both clients, made with the same options. */
async function both(
  options: ClientOptions & AsyncClientOptions,
  show: (client: AsyncClient | Client) => Promise<void>,
): Promise<void> {
  // Generous for slow machines, but below the limit of a test: it cannot interrupt a blocked call.
  const timeout = 120_000
  for (const client of [
    new AsyncClient({ timeout, ...options }),
    new Client({ timeout, ...options }),
  ]) {
    try {
      await show(client)
    } finally {
      await client.close()
    }
  }
}

async function nginx(): Promise<{ http: string; https: string; port: number; tlsPort: number }> {
  const [port, tlsPort] = [await freePort(), await freePort()]
  const www = join(folder, `www-${port}`)
  spawnSync('mkdir', ['-p', www])
  writeFileSync(join(www, 'fox.txt'), text)
  for (const name of ['server.pem', 'server-key.pem'])
    copyFileSync(join(certs, name), join(folder, name))
  const config = join(folder, `nginx-${port}.conf`)
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${folder}/nginx-${port}.pid; error_log stderr;
    events {}
    http {
      access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
      fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi;
      scgi_temp_path ${folder}/scgi;
      gzip on; gzip_types *; gzip_min_length 1; client_max_body_size 1m;
      server {
        listen 127.0.0.1:${port}; listen 127.0.0.1:${tlsPort} ssl http2;
        ssl_certificate ${folder}/server.pem; ssl_certificate_key ${folder}/server-key.pem;
        root ${www};
        location /redirect { return 302 /fox.txt; }
        location /auth {
          auth_basic "r"; auth_basic_user_file ${folder}/htpasswd; alias ${www}/fox.txt;
        }
      }
    }`,
  )
  writeFileSync(join(folder, 'htpasswd'), 'user:{PLAIN}pass\n')
  await start('nginx', ['-e', 'stderr', '-c', config], port)
  return { http: `http://127.0.0.1:${port}`, https: `https://localhost:${tlsPort}`, port, tlsPort }
}

test(
  'nginx: HTTP/1.1, TLS and HTTP/2, gzip, ranges, redirects, Basic, 413',
  { skip: missing('nginx') },
  async () => {
    const server = await nginx()
    for (const { baseUrl, http2, version } of [
      { baseUrl: server.http, http2: false, version: 'HTTP/1.1' },
      { baseUrl: server.https, http2: false, version: 'HTTP/1.1' },
      { baseUrl: server.https, http2: true, version: 'HTTP/2' },
    ]) {
      await both({ baseUrl, http2, verify, followRedirects: true }, async (client) => {
        const whole = await client.get('/fox.txt')
        assert.equal(whole.httpVersion, version)
        assert.equal(whole.headers.get('content-encoding'), 'gzip')
        assert.equal(whole.text, text)
        const part = await client.get('/fox.txt', {
          headers: { Range: 'bytes=4-8', 'Accept-Encoding': 'identity' },
        })
        assert.deepEqual([part.statusCode, part.text], [206, 'quick'])
        assert.equal((await client.get('/redirect')).history.length, 1)
        assert.equal((await client.get('/auth')).statusCode, 401)
        assert.equal((await client.get('/auth', { auth: ['user', 'pass'] })).statusCode, 200)
        const large = await client.put('/fox.txt', { content: Buffer.alloc(3_000_000) })
        assert.equal(large.statusCode, 413)
        assert.equal((await client.head('/fox.txt')).statusCode, 200)
        assert.equal((await client.get('/none')).statusCode, 404)
      })
    }
  },
)

test(
  "nghttpd: HTTP/2 from nghttp2's own server, 200 calls over one connection",
  { skip: missing('nghttpd') },
  async () => {
    const port = await freePort()
    writeFileSync(join(folder, 'fox.txt'), text)
    await start(
      'nghttpd',
      [
        '-d',
        folder,
        '--max-concurrent-streams=10',
        String(port),
        join(certs, 'server-key.pem'),
        join(certs, 'server.pem'),
      ],
      port,
    )
    const client = new AsyncClient({
      http2: true,
      verify,
      baseUrl: `https://localhost:${port}`,
      limits: { maxConnections: 1 },
      timeout: null,
    })
    const responses = await Promise.all(Array.from({ length: 200 }, () => client.get('/fox.txt')))
    assert.deepEqual(
      [
        ...new Set(
          responses.map(
            (response) => `${response.httpVersion} ${response.statusCode} ${response.text.length}`,
          ),
        ),
      ],
      [`HTTP/2 200 ${text.length}`],
    )
    await client.close()
  },
)

/** Writes the configuration of a squid that requires authentication by these `auth_param` lines. */
function squidArguments(port: number, auth: readonly string[]): string[] {
  const config = join(folder, `squid-${port}.conf`)
  writeFileSync(
    config,
    `http_port 127.0.0.1:${port}
${auth.map((line) => `auth_param ${line}`).join('\n')}
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
cache deny all
pid_filename none
access_log none
cache_log /dev/null
coredump_dir ${folder}
shutdown_lifetime 0 seconds
`,
  )
  return ['-N', '-d', '1', '-f', config]
}

for (const { binary, args } of [
  {
    binary: 'squid',
    args: (port: number) => {
      writeFileSync(join(folder, 'squid.users'), `user:${md5Password('pass')}\n`)
      return squidArguments(port, [
        `basic program /usr/lib/squid/basic_ncsa_auth ${join(folder, 'squid.users')}`,
        'basic children 1',
      ])
    },
  },
  {
    binary: 'tinyproxy',
    args: (port: number) => {
      writeFileSync(
        join(folder, 'tiny.conf'),
        `Port ${port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nBasicAuth user pass\n`,
      )
      return ['-d', '-c', join(folder, 'tiny.conf')]
    },
  },
]) {
  test(
    `${binary}: http in absolute form and https through CONNECT, with a password`,
    { skip: missing(binary) || missing('nginx') },
    async () => {
      const [server, port] = [await nginx(), await freePort()]
      await start(binary, args(port), port)
      await both({ proxy: `http://user:pass@127.0.0.1:${port}`, verify }, async (client) => {
        assert.equal((await client.get(`${server.http}/fox.txt`)).text, text)
        assert.equal((await client.get(`${server.https}/fox.txt`)).text, text)
      })
      await both({ proxy: `http://user:wrong@127.0.0.1:${port}`, verify }, async (client) => {
        await assert.rejects(async () => client.get(`${server.https}/fox.txt`), {
          code: 'ERR_HTTP_PROXY',
        })
      })
    },
  )
}

test(
  'squid: Digest, in absolute form and with CONNECT, with and without Basic first',
  { skip: missing('squid') || missing('nginx') },
  async () => {
    const [server, port] = [await nginx(), await freePort()]
    const users = join(folder, 'squid.digest')
    writeFileSync(users, 'user:pass\n')
    const digest = [
      `digest program /usr/lib/squid/digest_file_auth ${users}`,
      'digest children 1',
      'digest realm gate',
    ]
    await start('squid', squidArguments(port, digest), port)
    for (const authScheme of ['basic', 'digest'] as const) {
      const proxy = (password: string): ClientOptions['proxy'] => ({
        url: `http://127.0.0.1:${port}`,
        auth: ['user', password],
        authScheme,
      })
      await both({ proxy: proxy('pass'), verify }, async (client) => {
        for (let i = 0; i < 3; i++) {
          assert.equal((await client.get(`${server.http}/fox.txt`)).text, text)
          assert.equal((await client.get(`${server.https}/fox.txt`)).text, text)
        }
      })
      await both({ proxy: proxy('wrong'), verify }, async (client) => {
        assert.equal((await client.get(`${server.http}/fox.txt`)).statusCode, 407)
        await assert.rejects(async () => client.get(`${server.https}/fox.txt`), {
          code: 'ERR_HTTP_PROXY',
          statusCode: 407,
        })
      })
    }
  },
)

test(
  'dante: SOCKS5 with names resolved by client or proxy; its refusal is a ProxyError',
  { skip: missing('danted') || missing('nginx') },
  async () => {
    const [server, port] = [await nginx(), await freePort()]
    const config = join(folder, 'danted.conf')
    writeFileSync(
      config,
      `logoutput: /dev/null
internal: 127.0.0.1 port = ${port}
external: lo
socksmethod: none
clientmethod: none
${process.getuid?.() === 0 ? 'user.privileged: root\nuser.unprivileged: nobody' : ''}
client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
socks block { from: 0.0.0.0/0 to: 127.0.0.9/32 }
socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
`,
    )
    await start('danted', ['-f', config], port)
    for (const scheme of ['socks5', 'socks5h']) {
      await both({ proxy: `${scheme}://127.0.0.1:${port}`, verify }, async (client) => {
        assert.equal((await client.get(`${server.http}/fox.txt`)).text, text)
        assert.equal(
          (await client.get(`${server.https.replace('localhost', '127.0.0.1')}/fox.txt`)).text,
          text,
        )
        await assert.rejects(
          async () => client.get(server.http.replace('127.0.0.1', '127.0.0.9')),
          {
            code: 'ERR_HTTP_PROXY',
            message: /not allowed/,
          },
        )
      })
    }
  },
)

test(
  'microsocks: SOCKS5 with a password, names resolved by client or proxy',
  { skip: missing('microsocks') || missing('nginx') },
  async () => {
    const [server, port] = [await nginx(), await freePort()]
    await start(
      'microsocks',
      ['-i', '127.0.0.1', '-p', String(port), '-u', 'user', '-P', 'pass'],
      port,
    )
    for (const scheme of ['socks5', 'socks5h']) {
      await both({ proxy: `${scheme}://user:pass@127.0.0.1:${port}`, verify }, async (client) => {
        assert.equal((await client.get(`${server.http}/fox.txt`)).text, text)
        if (scheme === 'socks5h')
          assert.equal((await client.get(`${server.https}/fox.txt`)).text, text)
      })
    }
    await both({ proxy: `socks5h://user:wrong@127.0.0.1:${port}` }, async (client) => {
      await assert.rejects(async () => client.get(server.http), { code: 'ERR_HTTP_PROXY' })
    })
  },
)
