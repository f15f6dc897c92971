/** Nothing of held-out tests can be read: by the model, on the disk, in logs, traces and answers. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, MemoryStore, type JsonObject, type RunStore } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import { scratch, testProvider } from '../../../helpers/engine.js'
import { writeFiles } from '../../../helpers/files.js'
import { serve } from '../../../helpers/serve.js'
import { call } from '../../../server/open-service.js'
import {
  assertHidden, GOAL, HELD_OUT, MARKERS, PROJECT, reveals, turnOf, WRONG,
} from './scenario.js'

test('what the search of these tests finds', () => {
  for (const marker of Object.values(MARKERS)) {
    assert.equal(reveals(`a ${marker} b`), true)
    for (const before of ['', 'x', 'xy', 'xyz'])
      assert.equal(reveals(Buffer.from(`${before}${marker} b`).toString('base64')), true)
  }
  assert.equal(reveals('nothing'), false)
})

/** The agent looks for them where they could be, between and during evaluations. */
const SEARCH =
  '$ grep -rlE "Zq7Content|Yp3Path|Wv5Command|Ut9Output" . "$DATA" /tmp/runwright-sealed-* ' +
  '2>/dev/null; ls -R . "$DATA" 2>/dev/null; cat /proc/*/cmdline 2>/dev/null | tr "\\0" " "; true'

async function searchEverywhere(
  t: TestContext,
  store: RunStore,
  data: string,
  { goal, holdout }: { readonly goal: string; readonly holdout: JsonObject },
): Promise<void> {
  const cwd = scratch(t)
  writeFiles(cwd, PROJECT)
  const warnings: unknown[] = []
  const onWarning = (warning: Error): void => void warnings.push(String(warning.stack))
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const sent: unknown[] = []
  const spans: unknown[] = []
  const steps = [WRONG[0], WRONG[1], SEARCH.replaceAll('$DATA', data)]
  const noted = (...what: unknown[]): object => (spans.push(what), {})
  await using service = await createRunService({
    engine: {
      store,
      roots: [cwd],
      tracer: { startSpan: noted, addEvent: noted, endSpan: noted } as never,
      providers: [
        testProvider((request, index) => {
          sent.push(JSON.parse(JSON.stringify(request)))
          return turnOf(steps, index)
        }),
      ],
      defaultModel: 'test:m',
    },
    onError: (error: unknown) => warnings.push(error),
    metrics: true,
  } as never)
  const { server } = await serve(service.handler)
  service.attach(server)
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const body = { goal, max_iterations: 4, holdout, metadata: { a: 'b' } }
  const answers: string[] = []
  const get = async (path: string, method = 'GET', content?: object): Promise<any> => {
    const answer = await call(port, method, path, content === undefined ? {} : { body: content })
    answers.push(answer.text, JSON.stringify(answer.headers))
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.text === '' ? null : JSON.parse(answer.text)
  }
  const headers = { 'idempotency-key': 'k', accept: 'text/event-stream' }
  const created = await call(port, 'POST', '/api/runs', { body, headers: { 'idempotency-key': 'k' } })
  assert.equal(created.status, 201, created.text)
  answers.push(created.text, JSON.stringify(created.headers))
  const id = created.json.run_id as string
  const stream = await call(port, 'GET', `/api/runs/${id}/events`, { headers })
  answers.push(stream.text)
  const run = await get(`/api/runs/${id}`)
  assert.equal(run.end_reason, 'holdout_exhausted')
  for (const path of ['', '/events', '/check-files', '/checkpoints', '/changes', '/files'])
    await get(`/api/runs/${id}${path}`)
  await get('/api/runs')
  answers.push((await call(port, 'GET', '/api/metrics')).text)
  answers.push((await call(port, 'GET', '/metrics')).text)
  const fork = await get(`/api/runs/${id}/fork`, 'POST', {
    max_iterations: 1, workspace: 'in_place',
  })
  const retry = await get(`/api/runs/${id}/retry`, 'POST')
  for (const { run_id } of [fork, retry])
    answers.push((await call(port, 'GET', `/api/runs/${run_id}/events`, { headers })).text)
  for (const { run_id } of [run, fork, retry]) {
    const { text } = await call(port, 'GET', `/api/runs/${run_id}/events`, { headers })
    assert.match(text, /holdout_evaluation/)
    for (const record of await store.read(run_id, 0, 10_000))
      assert.equal(reveals(record), false, JSON.stringify(record))
  }
  assert.ok(answers.length > 15 && sent.length >= 6 && spans.length > 0)
  for (const answer of answers) assert.equal(reveals(Buffer.from(answer)), false, answer)
  for (const request of sent) assert.equal(reveals(request), false, JSON.stringify(request))
  assert.equal(reveals(spans), false)
  assert.equal(reveals(warnings.map(String)), false)
  assertHidden(cwd)
  if (data !== '/nonexistent') assert.ok(assertHidden(data) > 3)
  // Copies of sealed checks are gone once a service is closed.
  await service.close()
  const names = fs.readdirSync(tmpdir()).filter((name) => name.includes('sealed-'))
  const own = names.filter((name) => name.includes(`-${process.pid}-`))
  for (const name of own) assertHidden(join(tmpdir(), name))
}

test('nothing of them can be found around a run with a file store', async (t) => {
  const data = join(scratch(t), 'data')
  const holdout = { ...HELD_OUT, tell: 'count' }
  await searchEverywhere(t, new FileStore({ directory: data }), data, { goal: GOAL, holdout })
  assert.equal(fs.readdirSync(join(data, 'holdouts')).length, 3)
})

test('nothing of them can be found around a run with a store in memory', async (t) => {
  const path = `held/${MARKERS.path}.sh`
  const text = `echo ${MARKERS.output} ${MARKERS.content} >&2\ncat "$0"\ngrep -q "a + b" lib/add.js\n`
  const holdout = { files: { [path]: text }, command: `sh ${path} # ${MARKERS.command}` }
  const goal = 'shell: test -f lib/add.js'
  await searchEverywhere(t, new MemoryStore(), '/nonexistent', { goal, holdout })
})
