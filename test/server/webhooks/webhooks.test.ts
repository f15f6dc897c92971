import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import type { WebhookFailure } from 'runwright/server'
import { Webhooks } from '../../../lib/server/webhooks/webhooks.js'
import { isPublicAddress } from '../../../lib/internal/web.js'
import { deliver } from '../../../lib/server/webhooks/delivery.js'
import { scratch } from '../../helpers/engine.js'
import { FakeEngine } from '../fake-engine.js'
import { KEY, openReceiver, openWebhooks, progressFolder, SECRET } from './receiver.js'

test('wanted events are delivered in order, signed, each with its own id', async (t) => {
  const { url, received, until } = await openReceiver(t)
  const engine = new FakeEngine()
  await openWebhooks(t, engine, url, {
    endpoints: [{ url, secret: SECRET, allowPrivate: true, kinds: ['log', 'run_end'] }],
  })
  const runId = engine.add()
  engine.log(runId, 2)
  engine.finish(runId)
  await until(3)
  assert.deepEqual(received.map(({ id }) => id), [2, 3, 4].map((seq) => `${runId}.${seq}`))
  assert.deepEqual(received.map(({ body }) => body.type), ['log', 'log', 'run_end'])
  for (const { raw, headers, body } of received) {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${raw}`
    const signature = createHmac('sha256', KEY).update(signed).digest('base64')
    assert.equal(headers['webhook-signature'], `v1,${signature}`)
    assert.equal(body.data.run_id, runId)
    assert.match(body.timestamp, /^\d{4}-\d\d-\d\dT/)
  }
})

test('a failed delivery is repeated with its id before later events of the run', async (t) => {
  let refusals = 3
  const { url, received, until } = await openReceiver(t, (_, response) => {
    response.statusCode = refusals-- > 0 ? 500 : 204
    response.end()
  })
  const engine = new FakeEngine()
  const failures: WebhookFailure[] = []
  await openWebhooks(t, engine, url, { onFailure: (failure) => failures.push(failure) })
  const runId = engine.add()
  engine.append(runId, 'human_check_required', {
    iteration: 1, summary: 's', gate_id: 'g', kind: 'iteration', deadline: null,
  })
  engine.finish(runId)
  await until(5)
  assert.deepEqual(
    received.map(({ id }) => Number(id.split('.')[1])),
    [2, 2, 2, 2, 3],
  )
  assert.deepEqual(
    failures.map(({ attempts, final }) => [attempts, final]),
    [
      [1, false],
      [2, false],
      [3, false],
    ],
  )
  assert.ok(!JSON.stringify(failures).includes('s3cret'))
})

test('after a 410 the event is not sent again', async (t) => {
  const { url, received } = await openReceiver(t, (_, response) => response.writeHead(410).end())
  const engine = new FakeEngine()
  const given = new Promise<WebhookFailure>((resolve) => {
    void openWebhooks(t, engine, url, { onFailure: resolve }).then(() =>
      engine.finish(engine.add()),
    )
  })
  assert.equal((await given).final, true)
  assert.equal(received.length, 1)
})

test('a restart resumes all runs, those that the killed process never saved too', async (t) => {
  const directory = progressFolder(t)
  let taking = false
  const { url, received, until } = await openReceiver(t, (_, response) => {
    // Requests of the killed process get no response.
    if (taking) response.end()
  })
  const engine = new FakeEngine()
  const options = { directory, retryMs: 1 }
  const first = await openWebhooks(t, engine, url, options)
  const [known, unknown] = [engine.add(), engine.add()]
  engine.finish(known)
  await until(1)
  await first.close()
  taking = true
  // The run in progress, and one that ended while no process was running.
  engine.finish(unknown)
  Object.assign(engine.runs.get(unknown)!.details, {
    created_at: new Date(Date.now() + 60_000).toISOString(),
  })
  const second = await openWebhooks(t, engine, url, options)
  await until(3)
  assert.deepEqual(
    new Set(received.slice(1).map(({ id }) => id)),
    new Set([`${known}.2`, `${unknown}.2`]),
  )
  await second.close()
})

test('redirects are not followed', async (t) => {
  const other = await openReceiver(t)
  const { url } = await openReceiver(t, (_, response) =>
    response.writeHead(307, { location: other.url }).end(),
  )
  const engine = new FakeEngine()
  const failure = new Promise<WebhookFailure>((resolve) => {
    void openWebhooks(t, engine, url, { onFailure: resolve }).then(() =>
      engine.finish(engine.add()),
    )
  })
  assert.equal((await failure).problem, 'the endpoint answered 307')
  assert.equal(other.received.length, 0)
})

/** The IPv6 addresses that lead to an IPv4 address, or did: mapped, compatible, NAT64, 6to4, … */
function embedding(address: string): string[] {
  const [a, b, c, d] = address.split('.').map(Number)
  const [high, low] = [(a! << 8) | b!, (c! << 8) | d!].map((half) => half.toString(16))
  const inverted = [~((a! << 8) | b!), ~((c! << 8) | d!)]
  const [notHigh, notLow] = inverted.map((half) => (half & 0xffff).toString(16))
  return [
    `::ffff:${address}`, `::ffff:${high}:${low}`, `::FFFF:${address}`, `::${high}:${low}`,
    `::ffff:0:${high}:${low}`, `64:ff9b::${high}:${low}`, `64:ff9b:1::${high}:${low}`,
    `2002:${high}:${low}::1`, `2001:0:0808:0808::${notHigh}:${notLow}`,
    `fe80::5efe:${high}:${low}`, `0:0:0:0:0:ffff:${high}:${low}`,
  ]
}

for (const { address, isPublic } of [
  ...[
    '127.0.0.1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '198.18.0.1',
    '192.0.2.1',
    // What clouds serve to their own machines.
    '169.254.170.2',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    '192.80.8.124',
    '161.26.0.10',
    '166.8.0.1',
    '166.11.255.255',
  ].map((address) => ({ address, isPublic: false })),
  ...[
    '::1',
    '::',
    'fe80::1',
    'fc00::1',
    'fd12::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '64:ff9b::a00:1',
    '2002:7f00:1::',
    '2001:db8::1',
    '2001::1',
    'ff02::1',
    '::7f00:1',
    'fe80::a9fe:a9fe%eth0',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fd00:c1::a9fe:a9fe',
    '64:ff9b:1::a00:1',
  ].map((address) => ({ address, isPublic: false })),
  // The same one in every form that embeds an IPv4 address.
  ...['168.63.129.16', '8.8.8.8'].flatMap(embedding).map((address) => ({
    address,
    isPublic: false,
  })),
  ...[
    '8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700::1111', '2a00:1450::1',
    '168.63.129.15', '168.63.129.17', '166.7.255.255', '166.12.0.0', '161.25.255.255',
  ].map((address) => ({
    address,
    isPublic: true,
  })),
  ...['', 'localhost', '127.1', '0x7f000001'].map((address) => ({ address, isPublic: false })),
]) {
  test(`${JSON.stringify(address)} is ${isPublic ? '' : 'not '}a public address`, () => {
    assert.equal(isPublicAddress(address), isPublic)
  })
}

for (const url of [
  'http://127.0.0.1:1/',
  'http://[::1]:1/',
  'http://0x7f.1:1/',
  'http://2130706433:1/',
  'http://[::ffff:127.0.0.1]:1/',
  'https://168.63.129.16/',
  'https://0xa83f8110/',
  'https://2822734096/',
  'https://168.63.33040/',
  'https://0250.077.0201.020/',
  'https://[::ffff:168.63.129.16]/',
  'https://[64:ff9b::a83f:8110]/',
  'https://[2002:a83f:8110::]/',
]) {
  test(`${url} is refused as no public address`, async () => {
    const { signal } = new AbortController()
    await assert.rejects(
      deliver(new URL(url), {}, '{}', { allowPrivate: false }, signal),
      /address of this machine/,
    )
  })
}

test('a name is checked by its addresses, and only those are connected to', async (t) => {
  const { url, received } = await openReceiver(t)
  const { port } = new URL(url)
  const target = new URL(`http://rebound.test:${port}/`)
  const { signal } = new AbortController()
  let asked = 0
  // A name that resolves to a public address first, and to a private one afterwards.
  const resolve = (
    _: string,
    done: (error: null, list: { address: string; family: number }[]) => void,
  ): void => {
    asked += 1
    done(null, [{ address: '127.0.0.1', family: 4 }])
  }
  await assert.rejects(
    deliver(target, {}, '{}', { allowPrivate: false, resolve }, signal),
    /private network/,
  )
  assert.equal(received.length, 0)
  assert.equal(
    (await deliver(target, {}, '{}', { allowPrivate: true, resolve }, signal)).status,
    200,
  )
  assert.equal(asked, 2)
})

for (const { endpoint, named } of [
  { endpoint: { url: 'http://example.com/', secret: SECRET }, named: /url must be/ },
  {
    endpoint: { url: 'file:///etc/passwd', secret: SECRET, allowPrivate: true },
    named: /url must be/,
  },
  {
    endpoint: { url: 'https://example.com/', secret: 'whsec_c2hvcnQ=' },
    named: /a secret must be/,
  },
  { endpoint: { url: 'https://example.com/', secret: 'my-own-secret' }, named: /a secret must be/ },
  {
    endpoint: { url: 'https://example.com/', secret: SECRET, kinds: ['nonsense' as never] },
    named: /kinds must be/,
  },
]) {
  test(`the endpoint ${endpoint.url} with ${named} is refused`, async (t) => {
    const opening = Webhooks.open(new FakeEngine(), {
      directory: scratch(t),
      endpoints: [endpoint],
    })
    await assert.rejects(opening, (error: Error) => {
      assert.match(error.message, named)
      assert.ok(!error.message.includes('my-own-secret'))
      return error instanceof TypeError
    })
  })
}

test('closing aborts a delivery in progress at once', async (t) => {
  const { url, until } = await openReceiver(t, () => {})
  const engine = new FakeEngine()
  const webhooks = await openWebhooks(t, engine, url)
  engine.finish(engine.add())
  await until(1)
  await webhooks.close()
  assert.equal(engine.observers.size, 0)
})
