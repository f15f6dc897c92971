import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { drainOnSignal } from 'runwright/server'
import { listen } from '../helpers/serve.js'
import { createServer } from 'node:http'
import { openService } from './open-service.js'
import { FakeEngine } from './fake-engine.js'

/** A signal that only a test's handlers receive. */
const SIGNAL = 'SIGHUP'

test('a signal ends streams with 1001, then servers; handlers can be removed', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  const told: string[] = []
  const stop = drainOnSignal(opened.service, [opened.served.server], {
    signals: [SIGNAL],
    graceMs: 0,
    onDrain: (signal) => told.push(signal),
  })
  try {
    using reader = await opened.socket(`/api/ws/${runId}`)
    await reader.event()
    const closed = once(opened.served.server, 'close')
    process.kill(process.pid, SIGNAL)
    assert.equal((await reader.rest()).code, 1001)
    reader.peer.end()
    await closed
    assert.deepEqual(told, [SIGNAL])
  } finally {
    stop()
  }
  assert.equal(process.listenerCount(SIGNAL), 0)
})

test('an idle connection does not keep a draining server open', async () => {
  const served = await listen(createServer())
  const socket = connect(served.port, '127.0.0.1')
  await Promise.all([once(socket, 'connect'), once(served.server, 'connection')])
  const stop = drainOnSignal({ close: async () => {} }, [served.server], { signals: [SIGNAL] })
  try {
    const closed = once(served.server, 'close')
    process.kill(process.pid, SIGNAL)
    await closed
  } finally {
    stop()
    socket.destroy()
  }
})

test('an error while closing is reported, and the servers still close', async () => {
  const served = await listen(createServer())
  const failure = new Error('the disk is gone')
  const errors: unknown[] = []
  const service = { close: () => Promise.reject(failure) }
  const stop = drainOnSignal(service, [served.server], {
    signals: [SIGNAL],
    onError: (error) => errors.push(error),
  })
  try {
    const closed = once(served.server, 'close')
    process.kill(process.pid, SIGNAL)
    await closed
    assert.deepEqual(errors, [failure])
  } finally {
    stop()
  }
})

test('onClosed is called last, and its error is reported', async () => {
  const served = await listen(createServer())
  const failure = new Error('the pool is gone')
  const steps: unknown[] = []
  served.server.on('close', () => steps.push('server'))
  await new Promise<void>((resolve) => {
    const stop = drainOnSignal({ close: async () => void steps.push('service') }, [served.server], {
      signals: [SIGNAL],
      onClosed: async () => {
        steps.push('host')
        throw failure
      },
      onError: (error) => {
        steps.push(error)
        stop()
        resolve()
      },
    })
    process.kill(process.pid, SIGNAL)
  })
  assert.deepEqual(steps, ['service', 'server', 'host', failure])
})

test('what is no server, such as an app of Express, is refused at once', () => {
  const service = { close: async () => {} }
  for (const server of [() => {}, {}, null, undefined, 8000]) {
    assert.throws(() => drainOnSignal(service, [server as never]), /needs servers that listen/)
  }
  assert.equal(process.listenerCount('SIGTERM'), 0)
})

test('an onDrain that fails is reported, and the service still closes', async () => {
  for (const onDrain of [
    () => {
      throw new Error('no log')
    },
    () => Promise.reject(new Error('no log')),
  ]) {
    const errors: unknown[] = []
    const closed = new Promise<void>((resolve) => {
      const stop = drainOnSignal({ close: async () => {} }, [], {
        signals: [SIGNAL],
        onDrain,
        onError: (error) => errors.push(error),
        onClosed: () => {
          stop()
          resolve()
        },
      })
      process.emit(SIGNAL, SIGNAL)
    })
    await closed
    assert.equal(String(errors), 'Error: no log')
  }
})
