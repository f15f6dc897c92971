import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVENT_KINDS } from '../../../lib/server/describe/event-schemas.js'
import { openService } from '../open-service.js'
import { assertMessageDescribed, type StreamDescription } from '../conformance.js'
import { FakeEngine } from '../fake-engine.js'

async function describe(basePath = ''): Promise<StreamDescription> {
  await using opened = await openService({ basePath })
  return (await opened.call('GET', `${basePath}/api/asyncapi.json`)).json
}

test('both kinds of stream are described, with a message for every kind of event', async () => {
  const { asyncapi, channels, components } = await describe()
  assert.equal(asyncapi, '3.1.0')
  const addresses = Object.values(channels).map(({ address }) => address)
  assert.deepEqual(addresses, ['/api/ws/{run_id}', '/api/runs/{run_id}/events'])
  const names = [...EVENT_KINDS, 'model_delta'].sort()
  assert.deepEqual(Object.keys(components.messages).sort(), names)
  assert.deepEqual(Object.keys(components.schemas).sort(), names)
  for (const { messages } of Object.values(channels)) {
    assert.deepEqual(Object.keys(messages).sort(), names)
  }
})

test('the description has the base path of the service', async () => {
  const { servers } = await describe('/agents')
  assert.deepEqual(Object.values(servers).map(({ pathname }) => pathname), ['/agents', '/agents'])
})

test('the check that all tests use finds an event that differs from its description', () => {
  const event = { run_id: 'r', iteration: 0, ts: 1, seq: 1 }
  const log = { ...event, kind: 'log', payload: { level: 'info', message: 'm' } }
  assertMessageDescribed(log)
  for (const wrong of [
    { ...log, kind: 'unknown_kind' },
    { ...log, seq: 0 },
    { ...log, payload: { level: 'loud', message: 'm' } },
    { ...log, payload: { level: 'info' } },
    { ...log, payload: { level: 'info', message: 'm', more: 1 } },
  ]) {
    assert.throws(() => assertMessageDescribed(wrong), assert.AssertionError)
  }
})

test('the events of the fake engine match their descriptions', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  engine.finish(runId)
  await using opened = await openService({ engine })
  using client = await opened.socket(`/api/ws/${runId}`)
  assert.equal((await client.rest()).events.length, 2)
})
