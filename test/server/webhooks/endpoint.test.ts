import assert from 'node:assert/strict'
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { StoreError, type EventKind } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { FakeEngine } from '../fake-engine.js'
import { openReceiver, openWebhooks, progressFolder, SECRET, type Received } from './receiver.js'
import { HOUR, DAY, byRun, progressIn, failuresOf, upTo, decide } from './run-deliveries.js'

function addGate(engine: FakeEngine, runId: string): void {
  engine.append(runId, 'human_check_required', {
    iteration: 1, summary: 's', gate_id: 'g', kind: 'iteration', deadline: null,
  })
}

const suffix = ({ id }: Received): string => id.slice(-6)

test('events that arrive while a run waits come after its retry, in order', async (t) => {
  let refusals = 1
  const { url, received, until } = await openReceiver(t, (_, response) => {
    response.statusCode = refusals-- > 0 ? 500 : 204
    response.end()
  })
  const engine = new FakeEngine()
  const clock = new ManualClock()
  await openWebhooks(t, engine, url, { clock, retryMs: HOUR })
  const runId = engine.add()
  addGate(engine, runId)
  await until(1)
  await clock.whenPending()
  addGate(engine, runId)
  engine.finish(runId)
  const other = engine.add()
  engine.finish(other)
  await until(2)
  assert.equal(received[1]!.id, `${other}.2`)
  clock.advance(HOUR)
  await until(5)
  assert.deepEqual(received.slice(2).map(({ id }) => id), [2, 3, 4].map((seq) => `${runId}.${seq}`))
})

test('the time of the first attempt is durable before the attempt', async (t) => {
  const directory = progressFolder(t)
  const found: unknown[] = []
  const { url, until } = await openReceiver(t, (_, response) => {
    found.push(progressIn(directory).at(-1)?.first)
    response.end()
  })
  const engine = new FakeEngine()
  const clock = new ManualClock()
  await openWebhooks(t, engine, url, { directory, clock })
  const runId = engine.add()
  addGate(engine, runId)
  await until(1)
  engine.finish(runId)
  await until(2)
  assert.deepEqual(found, [clock.now(), clock.now()])
})

for (const { asked, least, most } of [
  { asked: '120', least: 120_000, most: 120_000 },
  { asked: '999999999', least: HOUR, most: HOUR },
  { asked: new Date(Date.now() + DAY).toUTCString(), least: HOUR, most: HOUR },
  { asked: new Date(Date.now() - DAY).toUTCString(), least: 0, most: 1 },
  { asked: 'soon', least: 0, most: 1 },
  { asked: '-5', least: 0, most: 1 },
]) {
  const shown = asked.replace(/\d\d:.*/, '…')
  test(`Retry-After: ${shown} waits from ${least} to ${most} ms`, async (t) => {
    const directory = progressFolder(t)
    const { url } = await openReceiver(t, (_, response) =>
      response.writeHead(503, { 'retry-after': asked }).end(),
    )
    const engine = new FakeEngine()
    const clock = new ManualClock()
    const report = failuresOf()
    const webhooks = await openWebhooks(t, engine, url, {
      directory, clock, retryMs: 1, onFailure: report.onFailure,
    })
    engine.finish(engine.add())
    await report.until(1)
    await clock.whenPending()
    await webhooks.close()
    const { next, first } = progressIn(directory).at(-1)
    assert.ok(next - first >= least && next - first <= most, `${next - first} ms`)
  })
}

test('after a 410 the next events of the run are still delivered', async (t) => {
  const { url, received, until } = await openReceiver(t, ({ id }, response) => {
    response.statusCode = id.endsWith('.2') ? 410 : 204
    response.end()
  })
  const engine = new FakeEngine()
  await openWebhooks(t, engine, url, { clock: new ManualClock() })
  const runId = engine.add()
  addGate(engine, runId)
  engine.finish(runId)
  await until(2)
  assert.deepEqual(received.map(suffix), ['0001.2', '0001.3'])
})

test('a run that is deleted while it waits is forgotten', async (t) => {
  const directory = progressFolder(t)
  const { url, received, until } = await openReceiver(t, byRun(() => 500))
  const engine = new FakeEngine()
  const clock = new ManualClock()
  const webhooks = await openWebhooks(t, engine, url, { directory, clock, retryMs: HOUR })
  const [runId, other] = [engine.add(), engine.add()]
  engine.finish(runId)
  await until(1)
  await clock.whenPending()
  engine.runs.delete(runId)
  clock.advance(HOUR)
  // The attempt of a run that comes after it shows that its turn is over.
  engine.finish(other)
  await until(2)
  await webhooks.close()
  assert.equal(received.filter(({ id }) => id.startsWith(runId)).length, 1)
  assert.equal(progressIn(directory).findLast(({ run }) => run === runId).done, true)
})

test('an endpoint that is added again gets what happened meanwhile', async (t) => {
  const directory = progressFolder(t)
  const { url, received, until } = await openReceiver(t)
  const other = await openReceiver(t)
  const engine = new FakeEngine()
  const first = await openWebhooks(t, engine, url, { directory })
  const open = engine.add()
  await first.close()
  const without = await openWebhooks(t, engine, other.url, { directory })
  engine.finish(open)
  const created = engine.add()
  Object.assign(engine.runs.get(created)!.details, { created_at: new Date().toISOString() })
  engine.finish(created)
  await other.until(1)
  await without.close()
  await openWebhooks(t, engine, url, { directory })
  await until(2)
  assert.deepEqual(new Set(received.map(({ id }) => id)), new Set([`${open}.2`, `${created}.2`]))
})

test('the progress that the first version stored is continued', async (t) => {
  const directory = progressFolder(t)
  const name = 'progress-v1.json'
  const fixture = fileURLToPath(new URL(`../../fixtures/webhooks/${name}`, import.meta.url))
  const { url, received, until } = await openReceiver(t)
  const engine = new FakeEngine()
  await (await openWebhooks(t, engine, url, { directory })).close()
  copyFileSync(fixture, join(directory, readdirSync(directory)[0]!))
  // The runs of the fixture: the second had its gate delivered, the first everything.
  const done = engine.add()
  Object.assign(engine.runs.get(done)!.details, { created_at: '2025-12-31T00:00:00.000Z' })
  for (const runId of [done, engine.add(), engine.add(), engine.add()]) {
    engine.log(runId, 1)
    addGate(engine, runId)
    engine.finish(runId)
  }
  await openWebhooks(t, engine, url, { directory, clock: new ManualClock() })
  await until(5)
  assert.deepEqual(
    received.map(suffix).sort(),
    ['0002.4', '0003.3', '0003.4', '0004.3', '0004.4'],
  )
})

test('a run that was created before another one was saved is not missed', async (t) => {
  const directory = progressFolder(t)
  const { url, received, until } = await openReceiver(t)
  const engine = new FakeEngine()
  const clock = new ManualClock()
  const options = { directory, clock }
  const first = await openWebhooks(t, engine, url, options)
  const created_at = new Date(clock.now() + HOUR).toISOString()
  const missed = engine.add()
  Object.assign(engine.runs.get(missed)!.details, { created_at })
  clock.advance(HOUR)
  const known = engine.add()
  Object.assign(engine.runs.get(known)!.details, { created_at })
  engine.finish(known)
  await until(1)
  await first.close()
  // As if the process had been killed before it noticed the run.
  const [name = ''] = readdirSync(directory)
  const path = join(directory, name)
  const lines = readFileSync(path, 'utf8').split('\n').filter((line) => !line.includes(missed))
  writeFileSync(path, lines.join('\n'))
  Object.assign(engine, { list: async () => ({ runs: [], next: null }) })
  await openWebhooks(t, engine, url, options)
  engine.finish(missed)
  // The last delivery of the first process may be repeated.
  while (!received.some(({ id }) => id === `${missed}.2`)) await until(received.length + 1)
})

test('a store that cannot be read for some time delays deliveries, with one warning', async (t) => {
  const warnings: string[] = []
  const listen = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', listen)
  t.after(() => process.off('warning', listen))
  const { url, until } = await openReceiver(t)
  const engine = new FakeEngine()
  const clock = new ManualClock()
  const { events } = engine
  let reads = 0
  let wake = (): void => {}
  Object.assign(engine, {
    events: async () => {
      reads += 1
      wake()
      throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'the disk is full')
    },
  })
  await openWebhooks(t, engine, url, { clock })
  for (let i = 0; i < 3; i++) engine.finish(engine.add())
  for (let round = 1; round <= 3; round++) {
    while (reads < 3 * round) await new Promise<void>((resolve) => (wake = resolve))
    await new Promise((resolve) => setImmediate(resolve))
    await clock.whenPending()
    clock.advance(10_000)
  }
  while (reads < 12) await new Promise<void>((resolve) => (wake = resolve))
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(warnings, [
    'webhooks: runs cannot be read, deliveries wait: the disk is full',
  ])
  Object.assign(engine, { events })
  clock.advance(10_000)
  await until(3)
})

test('a damaged run stops no other, and is not read over and over', async (t) => {
  const { url, until } = await openReceiver(t)
  const engine = new FakeEngine()
  const clock = new ManualClock()
  const { events } = engine
  const damaged = engine.add()
  let reads = 0
  Object.assign(engine, {
    events: async (...args: Parameters<typeof events>) => {
      if (args[0] !== damaged) return await events(...args)
      reads += 1
      throw new StoreError('ERR_AGENT_STORE_CORRUPT', 'quarantined')
    },
  })
  await openWebhooks(t, engine, url, { clock })
  engine.finish(engine.add())
  await until(1)
  assert.equal(reads, 1)
  assert.equal(clock.pending, 0)
})

test('a full disk stops no delivery', async (t) => {
  const directory = progressFolder(t)
  const { url, until } = await openReceiver(t)
  const engine = new FakeEngine()
  const clock = new ManualClock()
  await openWebhooks(t, engine, url, { directory, clock })
  const [name = ''] = readdirSync(directory)
  rmSync(join(directory, name))
  mkdirSync(join(directory, `${name}.new`))
  for (let i = 0; i < 20; i++) engine.finish(engine.add())
  await until(20)
})

test('what follows run_end is delivered once, and nothing is delivered again for it', async (t) => {
  const { url, received, until } = await openReceiver(t)
  const engine = new FakeEngine()
  const directory = progressFolder(t)
  const kinds: EventKind[] = ['run_started', 'run_end', 'changes_decided']
  const endpoints = [{ url, secret: SECRET, allowPrivate: true, kinds }]
  const clock = new ManualClock()
  const forgotten = async (runId: string): Promise<void> => {
    while (progressIn(directory).findLast(({ run }) => run === runId)?.done !== true) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const webhooks = await openWebhooks(t, engine, url, { directory, endpoints, clock })
  const runId = engine.add()
  engine.finish(runId)
  decide(engine, runId, 'pending')
  await until(3)
  await forgotten(runId)
  decide(engine, runId, 'applied')
  await until(4)
  await forgotten(runId)
  await webhooks.close()
  // Its line is gone, as that of any run that ended long ago.
  const [name = ''] = readdirSync(directory)
  const [header] = readFileSync(join(directory, name), 'utf8').split('\n')
  writeFileSync(join(directory, name), `${header}\n`)
  const again = new FakeEngine()
  const last = await openWebhooks(t, again, url, { directory, endpoints, clock })
  again.runs.set(runId, engine.runs.get(runId)!)
  decide(again, runId, 'pending')
  await until(5)
  await forgotten(runId)
  await last.close()
  assert.deepEqual(received.map(({ id }) => id), upTo(5).map((seq) => `${runId}.${seq}`))
})

test('files of ended runs that nobody wants to hear of begin no delivery', async (t) => {
  const { url, received, until } = await openReceiver(t)
  const engine = new FakeEngine()
  await openWebhooks(t, engine, url, {})
  const runId = engine.add()
  engine.finish(runId)
  await until(1)
  for (let i = 0; i < 300; i++) decide(engine, runId, 'applied')
  const other = engine.add()
  engine.finish(other)
  await until(2)
  assert.deepEqual(received.map(({ id }) => id), [`${runId}.2`, `${other}.2`])
})
