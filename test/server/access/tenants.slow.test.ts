/**
 * What one tenant can learn of the runs of another: nothing. Every route answers for such a run as
 * for one that does not exist; the table of routes is the router's own.
 */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { MemoryStore, RunEngine, StoreError, type RunDetails, type RunHead } from 'runwright/agent'
import { bearerKeys, ProblemError } from 'runwright/server'
import { Router } from '../../../lib/server/router.js'
import { untilAborted } from '../../helpers/abort.js'
import { follow, scratch, testProvider } from '../../helpers/engine.js'
import { openService, type Answer, type CallOptions, type Opened } from '../open-service.js'
import { openReal } from '../real.js'

const ANN = 'ann-key-0123456789'
const BOB = 'bob-key-0123456789'
const authorize = bearerKeys({ ann: { key: ANN, tenant: 'a' }, bob: { key: BOB, tenant: 'b' } })
const UNKNOWN = '01890000-0000-7000-8000-000000000000'
const STATES = ['pending', 'running', 'awaiting_human', 'achieved', 'failed', 'aborted', 'damaged']

/** A store with a run that cannot be read. */
class DamagedStore extends MemoryStore {
  damaged = ''

  override async head(runId: string): Promise<RunHead | null> {
    if (runId === this.damaged) throw new StoreError('ERR_AGENT_STORE_CORRUPT', `${runId}: /data`)
    return await super.head(runId)
  }
}

/** A service in which tenant a has a run in each state, and the folder of each. */
async function openWorld(t: TestContext): Promise<{
  readonly opened: Opened
  readonly real: RunEngine
  readonly root: string
  readonly runs: Readonly<Record<string, RunDetails>>
  readonly router: Router
  statuses(): Promise<readonly unknown[]>
}> {
  const root = scratch(t)
  for (const name of ['b', ...STATES]) mkdirSync(join(root, name))
  const store = new DamagedStore()
  // Runs whose goal is `exit 3` go on; the others wait for their model.
  const provider = testProvider(({ messages, signal }) =>
    JSON.stringify(messages).includes('exit 3')
      ? {}
      : untilAborted(signal),
  )
  const options = { providers: [provider], defaultModel: 'test:m', maxConcurrentRuns: 1 }
  const engine = await RunEngine.open({ store, roots: [root], ...options })
  t.after(() => engine.close())
  const caller = { owner: { id: 'ann', tenant: 'a' } }
  const runs: Record<string, RunDetails> = {}
  const start = async (state: string, goal: string, until: string, more = {}): Promise<void> => {
    const request = { goal, cwd: join(root, state), ...more }
    const { details } = await engine.create(request, { caller, idempotencyKey: state })
    runs[state] = details
    await follow(engine, details.run_id, ({ kind }) => kind === until)
  }
  await start('achieved', 'shell: true', 'run_end')
  await start('damaged', 'shell: true', 'run_end')
  await start('failed', 'shell: exit 3', 'run_end', { max_iterations: 1 })
  await start('awaiting_human', 'shell: exit 3', 'human_check_required', { hitl_enabled: true })
  await start('aborted', 'shell: false', 'step_start')
  await engine.abort(runs['aborted']!.run_id)
  await follow(engine, runs['aborted']!.run_id)
  await start('running', 'shell: false', 'step_start')
  await start('pending', 'shell: false', 'run_created')
  store.damaged = runs['damaged']!.run_id
  const opened = await openService({ engine, authorize, metrics: true })
  t.after(() => opened[Symbol.asyncDispose]())
  return {
    opened,
    real: engine,
    root,
    runs,
    router: await routerOf(opened),
    statuses: async () => (await engine.list({ tenant: 'a' })).runs,
  }
}

/** The router of a service, which it shows to nobody. */
async function routerOf(opened: Opened): Promise<Router> {
  const { match } = Router.prototype
  try {
    return await new Promise<Router>((resolve, reject) => {
      Router.prototype.match = function (path) {
        resolve(this)
        return match.call(this, path)
      }
      opened.call('GET', '/api/health').catch(reject)
    })
  } finally {
    Router.prototype.match = match
  }
}

/** Everything of a response that a client sees, but the date and the id of the request. */
function seen({ status, headers, text }: Answer): unknown {
  const { date: _, 'x-request-id': id, ...others } = headers
  return { status, headers: others, text: text.replaceAll(String(id), 'REQUEST') }
}

const bob = (more: CallOptions = {}): CallOptions => ({
  ...more,
  headers: { authorization: `Bearer ${BOB}`, ...more.headers },
})

/** Requests that a route may get, whatever it is. */
function requestsOf(
  method: string,
  checkpoint_id: string,
): readonly (readonly [query: string, CallOptions])[] {
  if (method === 'POST') {
    const answers = [{ decision: 'approve' }, { decision: 'abort', gate_id: 'g' }]
    const acts = [{ checkpoint_id }, { dry_run: true }, { text: 'x' }, { at: 'end' }]
    const bodies = [undefined, {}, ...answers, ...acts, 'x']
    const requests = bodies.map((body): readonly [string, CallOptions] => {
      return ['', bob(body === undefined ? {} : { body })]
    })
    // A key that the owner of the runs has used.
    const headers = { 'idempotency-key': 'failed' }
    return [...requests, ['', bob({ headers })], ['', bob({ headers, body: { text: 'x' } })]]
  }
  if (method === 'DELETE') return [['', bob()]]
  const events = ['?after=0&limit=1', '?after=9999', '?kinds=no']
  const trees = ['?from=start&to=now', '?at=now', `?at=${checkpoint_id}`]
  return ['', ...events, ...trees].flatMap((query) =>
    ['application/json', 'text/event-stream', 'text/x-diff'].map((accept) => {
      const headers = { accept, 'if-none-match': '*', 'last-event-id': '3' }
      return [query, bob({ headers })] as const
    }),
  )
}

test("every route answers for another tenant's run as for one that does not exist", async (t) => {
  const { opened, real, router, runs, statuses } = await openWorld(t)
  const before = await statuses()
  const ofRuns = router.routes.filter(({ isOfRun }) => isOfRun)
  assert.ok(ofRuns.length >= 7, 'the table has the routes of runs')
  const checkpoint: string = (await real.get(runs['failed']!.run_id)).checkpoint_id ?? ''
  assert.notEqual(checkpoint, '')
  for (const { method, path } of ofRuns) {
    for (const [query, options] of requestsOf(method, checkpoint)) {
      const ask = async (runId: string): Promise<unknown> => {
        const target = path.replace('{run_id}', runId).replaceAll(/{\+?\w+}/g, 'x')
        return seen(await opened.call(method, `${target}${query}`, options))
      }
      const expected = await ask(UNKNOWN)
      for (const state of STATES) {
        const what = `${method} ${path}${query} ${JSON.stringify(options)} of a run ${state}`
        assert.deepEqual(await ask(runs[state]!.run_id), expected, what)
      }
    }
  }
  assert.deepEqual(await statuses(), before, 'nothing has changed')
  assert.deepEqual(opened.errors, [])
})

test("a stream of another tenant's run is refused as one of no run", async (t) => {
  const { opened, runs } = await openWorld(t)
  const token = Buffer.from(BOB).toString('base64url')
  const protocols = { 'Sec-WebSocket-Protocol': `runwright.v1, bearer.${token}` }
  const ask = async (runId: string): Promise<unknown> => {
    using socket = await opened.socket(`/api/ws/${runId}?after=0`, protocols)
    const { request_id: _, ...problem } = await socket.problem()
    return [socket.head.replaceAll(/^(date|x-request-id):.*$/gim, ''), problem]
  }
  const expected = await ask(UNKNOWN)
  assert.match(JSON.stringify(expected), /404.*run_not_found/)
  for (const state of STATES) assert.deepEqual(await ask(runs[state]!.run_id), expected, state)
})

test("other routes do not know another tenant's runs either", async (t) => {
  const { opened, root, runs } = await openWorld(t)
  const ids = STATES.map((state) => runs[state]!.run_id)
  const none = seen(await opened.call('GET', '/api/runs?limit=1', bob()))
  assert.match(JSON.stringify(none), /"text":"\[\]"/)
  for (const { run_id, created_at } of Object.values(runs)) {
    const position = JSON.stringify([Date.parse(created_at) + 1, run_id])
    const cursor = Buffer.from(position).toString('base64url')
    for (const query of [`cursor=${cursor}`, `search=${run_id}`, 'status=running&status=pending'])
      assert.deepEqual(seen(await opened.call('GET', `/api/runs?limit=1&${query}`, bob())), none)
  }
  const create = (body: object, key?: string): Promise<Answer> => {
    const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
    const request = { goal: 'shell: false', ...body }
    return opened.call('POST', '/api/runs', bob({ body: request, headers }))
  }
  // A model that would replay such a run.
  const replay = async (id: string): Promise<unknown> => {
    const answer = await create({ cwd: join(root, 'b'), model_name: `replay:${id}` })
    const { 'content-length': _, date: __, 'x-request-id': own, ...headers } = answer.headers
    const text = answer.text.replaceAll(id, 'ID').replaceAll(String(own), 'REQUEST')
    return [answer.status, headers, text]
  }
  for (const id of ids.filter((id) => id !== runs['damaged']!.run_id))
    assert.deepEqual(await replay(id), await replay(UNKNOWN))
  // Their folders, what is in them, and what contains them.
  const refused = new Set<string>()
  for (const state of STATES) {
    for (const name of [state, `${state}/none`, '.']) {
      for (const goal of ['shell: false', 'npm-test', 'no such goal']) {
        const answer = await create({ goal, cwd: join(root, name) })
        assert.deepEqual([answer.status, answer.json.code], [403, 'forbidden_cwd'])
        refused.add(JSON.stringify(seen(answer)))
      }
    }
  }
  assert.equal(refused.size, 1)
  assert.doesNotMatch([...refused].join(), /tenant|run\b|ann|wait|busy/)
  // Their keys.
  const own = await create({ cwd: join(root, 'b') }, 'running')
  assert.equal(own.status, 201, own.text)
  assert.equal((await create({ cwd: join(root, 'b') }, 'running')).json.run_id, own.json.run_id)
  // The numbers.
  const health = await opened.call('GET', '/api/health', bob())
  assert.deepEqual(Object.keys(health.json), ['status'])
  assert.equal((await opened.call('GET', '/metrics', bob())).json.code, 'forbidden_tenant')
  const shown = JSON.stringify([own.text, (await opened.call('GET', '/api/runs', bob())).text])
  for (const id of ids) assert.ok(!shown.includes(id))
})

test('roots of the principal decide what a caller may use; an error of theirs opens nothing', async (t) => {
  const root = scratch(t)
  for (const name of ['a', 'b']) mkdirSync(join(root, name))
  let fail: Error | undefined
  const asked: unknown[] = []
  const real = await openReal(t, {
    service: { authorize },
    engine: {
      roots: (principal) => {
        asked.push(principal)
        if (fail !== undefined) throw fail
        return [join(root, principal!.tenant!)]
      },
    },
  })
  const post = (key: string, path: string, body?: object): Promise<Answer> => {
    const headers = { authorization: `Bearer ${key}` }
    return real.call('POST', path, body === undefined ? { headers } : { headers, body })
  }
  const goal = 'shell: true'
  const first = await post(BOB, '/api/runs', { goal })
  assert.deepEqual([first.status, first.json.cwd], [201, join(root, 'b')])
  assert.deepEqual(asked[0], { id: 'bob', tenant: 'b' })
  const outside = await post(BOB, '/api/runs', { goal, cwd: join(root, 'a') })
  assert.deepEqual([outside.status, outside.json.errors[0].pointer], [422, '/cwd'])
  fail = new Error('the directory of tenants is down: postgres://secret')
  for (const [path, body] of [
    ['/api/runs', { goal }],
    ['/api/runs', { goal, cwd: join(root, 'b') }],
    [`/api/runs/${first.json.run_id}/retry`, undefined],
  ] as const) {
    const answer = await post(BOB, path, body)
    assert.deepEqual([answer.status, answer.json.code], [500, 'internal_error'])
    assert.doesNotMatch(answer.text, /secret/)
    assert.equal(real.errors.pop(), fail)
  }
  fail = new ProblemError(403, 'no_folder', 'ask for a folder first')
  assert.equal((await post(ANN, '/api/runs', { goal })).json.code, 'no_folder')
})
