/** How the page of a run reads its events, without a browser. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

const folder = new URL('../../lib/server/dashboard/static/', import.meta.url).href

test('the events of a run are read up to a page that brings nothing new', async (t) => {
  const asked: string[] = []
  const pages = [[1, 2], [3], [3, 2]]
  Object.assign(globalThis, {
    document: { baseURI: 'http://a.test/' },
    WebSocket: class extends EventTarget {
      constructor() {
        super()
        setImmediate(() => resolveEnd('the socket'))
      }
      close(): void {}
    },
  })
  let resolveEnd: (what: string) => void = () => undefined
  const end = new Promise<string>((resolve) => (resolveEnd = resolve))
  t.mock.method(globalThis, 'fetch', async (url: URL) => {
    asked.push(url.search)
    if (asked.length > 20) resolveEnd('one page after another')
    const seqs = pages[Math.min(asked.length, pages.length) - 1]!
    return Response.json(seqs.map((seq) => ({ seq, kind: 'log' })))
  })
  const { follow } = (await import(`${folder}follow.js`)) as {
    follow(runId: string, reader: object): { stop(): void }
  }
  const seen: number[] = []
  const events = (fresh: readonly { seq: number }[]): unknown =>
    seen.push(...fresh.map(({ seq }) => seq))
  const reading = follow('r', { events, state() {} })
  assert.equal(await end, 'the socket')
  reading.stop()
  assert.deepEqual(seen, [1, 2, 3])
  assert.deepEqual(asked, ['?after=0&limit=100', '?after=2&limit=1000', '?after=3&limit=1000'])
})
