import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearerKeys } from 'runwright/server'
import { Counter, exposition, Gauge, Histogram } from '../../../lib/server/monitoring/metrics.js'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'
import { samplesOf } from './metrics-page.js'

test('counters, gauges and histograms are written in the text format, with labels escaped', () => {
  const counter = new Counter('a_total', 'Back\\slash and\nline.', ['x'])
  counter.add(1, 'quo"te\\ and\nline')
  counter.add(2.5, 'plain')
  const gauge = new Gauge('b', 'B.', [], () => [[Infinity]])
  const histogram = new Histogram('c_seconds', 'C.', [0.1, 1], ['y'])
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(value, 'z')
  assert.equal(
    exposition([counter, gauge, histogram]),
    [
      '# HELP a_total Back\\\\slash and\\nline.',
      '# TYPE a_total counter',
      'a_total{x="quo\\"te\\\\ and\\nline"} 1',
      'a_total{x="plain"} 2.5',
      '# HELP b B.',
      '# TYPE b gauge',
      'b +Inf',
      '# HELP c_seconds C.',
      '# TYPE c_seconds histogram',
      'c_seconds_bucket{y="z",le="0.1"} 2',
      'c_seconds_bucket{y="z",le="1"} 3',
      'c_seconds_bucket{y="z",le="+Inf"} 4',
      'c_seconds_sum{y="z"} 7.65',
      'c_seconds_count{y="z"} 4',
      '',
    ].join('\n'),
  )
})

test('label values beyond the limit count as other, and none is lost', () => {
  const counter = new Counter('a_total', 'A.', ['x'])
  for (let i = 0; i < 1_000; i++) counter.add(1, `v${i}`)
  const samples = samplesOf(exposition([counter]))
  assert.ok(samples.size <= 201, String(samples.size))
  assert.equal([...samples.values()].reduce((sum, value) => sum + value), 1_000)
  assert.equal(samples.get('a_total{x="other"}'), 800)
})

test('metrics are served only when enabled, to callers without a tenant', async () => {
  await using without = await openService()
  assert.equal((await without.call('GET', '/metrics')).status, 404)
  const [free, bound] = ['free-key-0123456789', 'bound-key-0123456789']
  await using opened = await openService({
    metrics: true,
    authorize: bearerKeys({ free, bound: { key: bound, tenant: 'acme' } }),
  })
  const get = async (headers: Record<string, string>): Promise<number> =>
    (await opened.call('GET', '/metrics', { headers })).status
  assert.equal(await get({}), 401)
  assert.equal(await get({ authorization: `Bearer ${bound}` }), 403)
  assert.equal(await get({ authorization: `Bearer ${free}` }), 200)
  // The Accept header of Prometheus.
  const accept =
    'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1'
  assert.equal(await get({ authorization: `Bearer ${free}`, accept }), 200)
})

test('the page is served even if the store cannot count its runs', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({
    engine: Object.assign(engine, {
      counts: async () => {
        throw new Error('broken')
      },
    }),
    metrics: true,
  })
  const samples = samplesOf((await opened.call('GET', '/metrics')).text)
  assert.ok(samples.has('runwright_queue_depth'))
  assert.ok(!samples.has('runwright_gates_waiting'))
})

test('checkpoints, operations on files, forks and messages are counted', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine, metrics: true })
  const runId = engine.add()
  const started = {
    goal: 'g', model_name: 'm', cwd: '/', max_iterations: 1, hitl_enabled: false,
    parent_run_id: null,
  }
  engine.append(runId, 'run_created', started)
  const forked_from = { run_id: runId, seq: 1 }
  engine.append(runId, 'run_created', { ...started, workspace: 'isolated', forked_from })
  engine.append(runId, 'run_created', { ...started, workspace: 'isolated', role: 'attempt' })
  const checkpoint = { checkpoint_id: 'a', files: 1, bytes: 9, left_out: [] }
  engine.append(runId, 'checkpoint', { ...checkpoint, reason: 'start', new_bytes: 7 })
  engine.append(runId, 'checkpoint', { ...checkpoint, reason: 'end', new_bytes: 2 })
  const by = null
  engine.append(runId, 'user_message', { message_id: 'm', text: 't', deliver: 'next_turn', by })
  const changed = { operation_id: 'o', paths: ['a'], more: 0 }
  engine.append(runId, 'files_changed', { ...changed, operation: 'restore', skipped: [] })
  engine.append(runId, 'files_changed', { ...changed, operation: 'apply', skipped: ['b'] })
  engine.append(runId, 'changes_decided', { changes: 'applied', by })
  const samples = samplesOf((await opened.call('GET', '/metrics')).text)
  for (const [name, value] of Object.entries({
    'runwright_checkpoints_total{reason="start"}': 1,
    'runwright_checkpoints_total{reason="end"}': 1,
    runwright_checkpoint_bytes_total: 9,
    'runwright_file_operations_total{operation="restore",outcome="done"}': 1,
    'runwright_file_operations_total{operation="apply",outcome="incomplete"}': 1,
    'runwright_changes_decided_total{changes="applied"}': 1,
    runwright_isolated_runs_total: 1,
    runwright_forks_total: 1,
    runwright_messages_total: 1,
  })) {
    assert.equal(samples.get(name), value, name)
  }
})
