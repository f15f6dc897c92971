/** Every parameter of RFC 7692, section 7.1, in the offers of other implementations. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { WebSocket } from 'ws'
import { EXECUTABLE, openBrowser } from '../server/browser.js'
import { negotiationServer, SETTINGS } from './negotiation-server.js'
import { missing, PYTHON } from './python.js'

const run = promisify(execFile)
const MESSAGES = ['some words that come again '.repeat(300), '', 'words '.repeat(99)]

for (const [module, atLeast] of [['websockets', 500], ['autobahn', 150]] as const) {
  test(`all offers of python3-${module} are agreed on`, { skip: missing(module) }, async () => {
    await using server = await negotiationServer()
    const script = fileURLToPath(new URL(`negotiate_${module}.py`, import.meta.url))
    const args = [script, `${server.port}`, `${SETTINGS.length}`]
    const { stdout } = await run(PYTHON, args).catch((error: { stdout: string }) => error)
    assert.ok(Number(stdout) >= atLeast, stdout)
  })
}

test('all offers of ws are agreed on', async () => {
  await using server = await negotiationServer()
  const bits = [undefined, 8, 9, 10, 11, 12, 13, 14, 15]
  let count = 0
  // False is more than no parameter: `ws` then refuses what the server may answer unasked.
  for (const serverNoContextTakeover of [undefined, true]) {
    for (const clientNoContextTakeover of [undefined, true]) {
      for (const serverMaxWindowBits of bits) {
        for (const clientMaxWindowBits of [...bits, true]) {
          const offer = {
            serverNoContextTakeover,
            clientNoContextTakeover,
            ...(serverMaxWindowBits === undefined ? {} : { serverMaxWindowBits }),
            ...(clientMaxWindowBits === undefined ? {} : { clientMaxWindowBits }),
            threshold: 0,
          }
          const path = (count++ * 7) % SETTINGS.length
          const client = new WebSocket(`ws://127.0.0.1:${server.port}/${path}`, {
            perMessageDeflate: offer as object,
          })
          await once(client, 'open')
          assert.match(client.extensions, /permessage-deflate/)
          for (const message of MESSAGES) {
            client.send(message)
            const [echo] = (await once(client, 'message')) as [Buffer]
            assert.equal(echo.toString(), message, JSON.stringify({ offer, path }))
          }
          client.close(1000)
          await once(client, 'close')
        }
      }
    }
  }
  assert.equal(count, 360)
})

const noChromium = existsSync(EXECUTABLE) ? false : `${EXECUTABLE} is not there`

test("Chromium's offer is agreed on with all settings", { skip: noChromium }, async () => {
  let close = async (): Promise<void> => {}
  const context = await openBrowser({ after: (hook) => (close = hook) })
  await using server = await negotiationServer()
  try {
    const tab = await context.newPage()
    await tab.goto(`http://127.0.0.1:${server.port}/`)
    const faults = await tab.evaluate(`(async () => {
      const faults = []
      for (let path = 0; path < ${SETTINGS.length}; path++) {
        const socket = new WebSocket('ws://' + location.host + '/' + path)
        const next = (type) => new Promise((resolve) => {
          socket.addEventListener(type, resolve, { once: true })
          socket.addEventListener('close', resolve, { once: true })
        })
        await next('open')
        if (!socket.extensions.startsWith('permessage-deflate')) faults.push([path, 'declined'])
        for (const message of ${JSON.stringify(MESSAGES)}) {
          if (socket.readyState === 1) socket.send(message)
          const { data, code } = await next('message')
          if (data !== message) faults.push([path, code])
        }
        socket.close()
      }
      return faults
    })()`)
    assert.deepEqual(faults, [])
  } finally {
    await close()
  }
})
