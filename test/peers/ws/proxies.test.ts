import assert from 'node:assert/strict'
import { type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { proxyConnect } from 'runwright/http'
import { WebSocketClient } from 'runwright/ws'
import { freePort, missing, startProgram } from '../programs.js'
import { echoServer } from './echo-server.js'

// Real proxies, from the Debian packages tinyproxy, squid, microsocks and dante-server.

const folder = mkdtempSync(join(tmpdir(), 'runwright-ws-proxies-'))
const children: ChildProcess[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

interface ProxyProgram {
  readonly binary: string
  readonly args: (port: number) => readonly string[]
  readonly url: (port: number) => string
  readonly wrong?: (port: number) => string
}

const programs: readonly ProxyProgram[] = [
  {
    binary: 'tinyproxy',
    args: (port) => [
      '-d', '-c',
      file('t', `Port ${port}\nListen 127.0.0.1\nAllow 127.0.0.1\nBasicAuth user pass\n`),
    ],
    url: (port) => `http://user:pass@127.0.0.1:${port}`,
    wrong: (port) => `http://user:wrong@127.0.0.1:${port}`,
  },
  {
    binary: 'squid',
    args: (port) => [
      '-N', '-d', '1', '-f',
      file(
        's',
        `http_port 127.0.0.1:${port}\nhttp_access allow all\ncache deny all\npid_filename none\n` +
          `access_log none\ncache_log /dev/null\ncoredump_dir ${folder}\n`,
      ),
    ],
    url: (port) => `http://127.0.0.1:${port}`,
  },
  {
    binary: 'microsocks',
    args: (port) => ['-i', '127.0.0.1', '-p', String(port), '-u', 'user', '-P', 'pass'],
    url: (port) => `socks5h://user:pass@127.0.0.1:${port}`,
    wrong: (port) => `socks5h://user:wrong@127.0.0.1:${port}`,
  },
  {
    binary: 'danted',
    args: (port) => [
      '-f',
      file(
        'd',
        `logoutput: /dev/null\ninternal: 127.0.0.1 port = ${port}\nexternal: lo\n` +
          'socksmethod: none\nclientmethod: none\n' +
          (process.getuid?.() === 0 ? 'user.privileged: root\nuser.unprivileged: nobody\n' : '') +
          'client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }\n' +
          'socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }\n',
      ),
    ],
    url: (port) => `socks5://127.0.0.1:${port}`,
  },
]

for (const { binary, args, url, wrong } of programs) {
  test(`a WebSocket goes through ${binary}`, { skip: missing(binary) }, async () => {
    const port = await freePort()
    children.push(await startProgram(binary, args(port), port))
    await using server = await echoServer(true)
    const limits = { deflate: true, connectTimeoutMs: 120_000, maxMessageBytes: 2 ** 21 }
    const through = (proxy: string): WebSocketClient =>
      new WebSocketClient({ ...limits, connect: proxyConnect(proxy, { timeout: null }) })
    const connection = await through(url(port)).connect(server.url)
    const messages = connection.messages()
    for (const message of ['hello', 'x'.repeat(1_000_000)]) {
      connection.send(message)
      assert.equal((await messages.next()).value, message)
    }
    assert.equal((await connection.close(4000, 'done')).wasClean, true)
    await server.ended(1)
    assert.equal(server.ends[0]!.code, 4000)
    if (wrong === undefined) return
    await assert.rejects(through(wrong(port)).connect(server.url), (error: Error) => {
      assert.equal((error.cause as { code?: string }).code, 'ERR_HTTP_PROXY')
      assert.doesNotMatch(error.message, /wrong/)
      return true
    })
  })
}
