import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { echoServer } from './echo-server.js'

const run = promisify(execFile)

function missing(): string | false {
  try {
    return execFileSync('curl', ['--version']).includes('HTTP2')
      ? false
      : 'this curl knows no HTTP/2'
  } catch {
    return 'curl is not there'
  }
}

test('curl --http2, which offers h2c, gets a normal response', { skip: missing() }, async () => {
  await using server = await echoServer(false)
  const { stdout } = await run('curl', [
    '-s',
    '--http2',
    '-w',
    ' %{http_code} %{http_version}',
    `http://127.0.0.1:${server.port}/page`,
  ])
  assert.equal(stdout, 'plain 200 1.1')
})

test('curl --http2 with content gets its response too', { skip: missing() }, async () => {
  await using server = await echoServer(false)
  const { stdout } = await run('curl', [
    '-s',
    '--http2',
    '-d',
    'a=1',
    `http://127.0.0.1:${server.port}/page`,
  ])
  assert.equal(stdout, 'plain')
})
