import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogLine } from 'runwright/server'
import { openReal } from '../real.js'
import { samplesOf } from './metrics-page.js'

test('the page has runs, events, tokens, cost, requests and streams', async (t) => {
  const lines: LogLine[] = []
  const real = await openReal(t, {
    answer: () => ({ text: 'x', tokens: [100, 20] }),
    service: { metrics: true, onLog: (line) => lines.push(line) },
  })
  const { json } = await real.call('POST', '/api/runs', {
    body: { goal: 'shell: false', max_iterations: 1 },
  })
  using reader = await real.socket(`/api/ws/${json.run_id}`)
  const { events } = await reader.rest()
  await real.call('GET', '/nonsense')
  await real.call('PROPFIND', '/api/runs')
  const answer = await real.call('GET', '/metrics')
  assert.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  const samples = samplesOf(answer.text)
  const expected = {
    'runwright_runs{status="failed"}': 1,
    runwright_queue_depth: 0,
    runwright_queue_limit: 256,
    runwright_gates_waiting: 0,
    'runwright_damaged{kind="runs"}': 0,
    'runwright_damaged{kind="files"}': 0,
    'runwright_streams_open{kind="sse"}': 0,
    runwright_events_appended_total: events.length,
    'runwright_runs_ended_total{status="failed",end_reason="max_iterations"}': 1,
    'runwright_model_tokens_total{model="test:m",direction="input"}': 100,
    'runwright_model_tokens_total{model="test:m",direction="output"}': 20,
    'runwright_model_calls_total{model="test:m"}': 1,
    'runwright_model_cost_usd_total{model="test:m"}': 0.00014,
    'runwright_http_requests_total{method="POST",route="/api/runs",status="201"}': 1,
    'runwright_http_requests_total{method="OTHER",route="none",status="405"}': 1,
    'runwright_http_requests_total{method="GET",route="/api/ws/{run_id}",status="101"}': 1,
    runwright_slow_readers_dropped_total: 0,
  }
  for (const [name, value] of Object.entries(expected)) assert.equal(samples.get(name), value, name)
  assert.ok(samples.get('runwright_append_seconds_count')! > 0)

  const ends = lines.filter(({ event }) => event === 'run_end')
  assert.equal(ends.length, 1)
  const created = lines.find((line) => line.event === 'request' && line.method === 'POST')
  assert.ok(created?.event === 'request' && created.status === 201 && created.duration_ms > 0)
})
