/** Code that importing an entry point must not load: it is loaded on demand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadedBy } from './helpers/bundle.js'

test('an import of runwright/agent loads neither the HTTP client nor MCP sessions', () => {
  const loaded = loadedBy('lib/agent/index.ts')
  assert.ok(loaded.has('lib/agent/engine.ts'))
  const late = /^lib\/http\/|^lib\/agent\/mcp\/session|^node:(?:https?|tls|zlib|worker_threads)$/
  assert.deepEqual([...loaded].filter((path) => late.test(path)), [])
})

test('an import of runwright/http loads no cryptography, compression or threads', () => {
  const loaded = loadedBy('lib/http/index.ts')
  assert.ok(loaded.has('lib/http/async-client.ts'))
  const late = /^node:(?:crypto|zlib|worker_threads)$/
  assert.deepEqual([...loaded].filter((path) => late.test(path)), [])
})

test('an import of runwright/ws or runwright/server loads no HTTP/2, TLS or compression', () => {
  const late = /^node:(?:http2|https|tls|zlib|worker_threads)$/
  for (const entry of ['lib/ws/index.ts', 'lib/server/index.ts']) {
    const loaded = loadedBy(entry)
    assert.ok(loaded.has('lib/ws/handshake.ts'))
    assert.deepEqual([...loaded].filter((path) => late.test(path)), [])
  }
})
