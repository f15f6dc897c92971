import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  DEFAULT_CONFIG,
  DEFAULT_DEFLATE,
  WebSocketServer,
  type WebSocketServerSettings,
} from 'runwright/ws'

test('a server without options has the documented defaults', () => {
  assert.deepEqual(new WebSocketServer().config, DEFAULT_CONFIG)
})

test('undefined keeps a default, null switches off, an object changes the fields it has', () => {
  const { config } = new WebSocketServer({
    maxMessageBytes: undefined,
    keepAlive: null,
    backpressure: { limitBytes: 10 ** 6 },
    deflate: { level: 1 },
    maxControlFramesPerSecond: null,
  })
  assert.equal(config.maxMessageBytes, DEFAULT_CONFIG.maxMessageBytes)
  assert.equal(config.keepAlive, null)
  assert.equal(config.maxControlFramesPerSecond, null)
  assert.deepEqual(config.backpressure, { ...DEFAULT_CONFIG.backpressure, limitBytes: 10 ** 6 })
  assert.deepEqual(config.deflate, { ...DEFAULT_DEFLATE, level: 1 })
})

test('lists are copied, so a later change by the caller has no effect', () => {
  const protocols = ['v1']
  const { config } = new WebSocketServer({ protocols })
  protocols.push('v2')
  assert.deepEqual(config.protocols, ['v1'])
})

describe('an invalid option is a TypeError with its name, expected and actual value', () => {
  const cases: [WebSocketServerSettings, RegExp][] = [
    [{ maxMessageBytes: 0 }, /^maxMessageBytes must be a whole number from 1 to \d+, got 0$/],
    [{ maxMessageBytes: 2 ** 40 }, /^maxMessageBytes must/],
    [{ maxFragments: 1.5 }, /^maxFragments must/],
    [{ maxConnections: -1 }, /^maxConnections must/],
    [{ maxHeaders: NaN }, /^maxHeaders must/],
    [{ receiveAheadBytes: 0 }, /^receiveAheadBytes must/],
    [{ handshakeTimeoutMs: Infinity }, /^handshakeTimeoutMs must/],
    [{ closeTimeoutMs: '5' as unknown as number }, /^closeTimeoutMs must .*, got a string$/],
    [{ maxControlFramesPerSecond: 0 }, /^maxControlFramesPerSecond must/],
    [{ keepAlive: { intervalMs: 0 } }, /^keepAlive.intervalMs must/],
    [{ keepAlive: { timeoutMs: 0 } }, /^keepAlive.timeoutMs must/],
    [{ backpressure: { highWaterBytes: 0 } }, /^backpressure.highWaterBytes must/],
    [
      { backpressure: { highWaterBytes: 10, limitBytes: 9 } },
      /^backpressure.limitBytes must be a whole number from 10/,
    ],
    [
      { backpressure: { policy: 'panic' as 'drop' } },
      /^backpressure.policy must be 'close', 'drop' or 'coalesce', got "panic"$/,
    ],
    [{ deflate: { serverMaxWindowBits: 7 } }, /^deflate.serverMaxWindowBits must/],
    [{ deflate: { clientMaxWindowBits: 16 } }, /^deflate.clientMaxWindowBits must/],
    [{ deflate: { thresholdBytes: -1 } }, /^deflate.thresholdBytes must/],
    [{ deflate: { maxBytes: -1 } }, /^deflate.maxBytes must/],
    [{ deflate: { level: 10 } }, /^deflate.level must/],
    [{ deflate: { memLevel: 0 } }, /^deflate.memLevel must/],
    [
      { deflate: { serverContextTakeover: 1 as unknown as boolean } },
      /^deflate.serverContextTakeover must/,
    ],
    [{ protocols: 'v1' as unknown as string[] }, /^protocols must be an array/],
    [{ protocols: ['a b'] }, /^protocols must be names .*, got "a b"$/],
    [{ origins: 'none' as 'any' }, /^origins must be 'same', 'any'/],
    [
      { origins: ['app.example'] },
      /^origins must be a list of origins like https:\/\/app.example, got "app.example"$/,
    ],
    [{ origins: ['null'] }, /^origins must/],
  ]
  for (const [settings, message] of cases) {
    test(JSON.stringify(settings), () => {
      assert.throws(() => new WebSocketServer(settings), (error: Error) => {
        assert.ok(error instanceof TypeError)
        assert.match(error.message, message)
        return true
      })
    })
  }
})
