/** One contender of `rest.mjs`: a server on a free port, in a process of its own. @module */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [contender] = process.argv.slice(2)
const reference = JSON.parse(process.env.REFERENCE ?? 'null')
const peers = createRequire(new URL('../../peers/package.json', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

const listen = (server) =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))

/** Model, goal and executor that do nothing. */
const NOOP = {
  roots: [scratch],
  cwdPolicy: 'allow',
  maxConcurrentRuns: 1_000,
  maxQueuedRuns: 1_000_000,
  defaultModel: 'noop:m',
  providers: [
    {
      id: 'noop',
      description: 'says nothing',
      isLanguageModel: false,
      suggestions: ['m'],
      create: () => ({
        name: 'noop:m',
        isLanguageModel: false,
        contextWindow: null,
        prices: null,
        complete: async () => ({
          message: { role: 'assistant', text: 'done', calls: [] },
          reasoning: '',
          usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 },
          stop: 'end',
        }),
      }),
    },
  ],
  executor: {
    name: 'noop',
    run: async () => ({
      exitCode: 1,
      output: '',
      timedOut: false,
      aborted: false,
      truncated: false,
      durationMs: 0,
    }),
    killMarked: async () => 0,
  },
}

async function startOurs(kind) {
  const { FileStore, MemoryStore, commandGoal } = await import(
    `${process.env.RUNWRIGHT}/agent/index.js`
  )
  const { createRunService } = await import(`${process.env.RUNWRIGHT}/server/index.js`)
  const store =
    kind === 'runwright'
      ? new MemoryStore({ retain: { runs: 2_000 } })
      : new FileStore({ directory: join(scratch, 'data') })
  let middle = ''
  if (kind === 'runwright-list') middle = await fill(store)
  const goals = [
    {
      name: 'noop',
      description: 'nothing',
      usage: 'noop',
      resolve: (cwd) => commandGoal({ name: 'noop', command: 'false' }, cwd),
    },
  ]
  const service = await createRunService({ engine: { ...NOOP, goals, store } })
  const server = createServer(service.handler)
  service.attach(server)
  const port = await listen(server)
  if (kind !== 'runwright') return { port, run: middle }
  const { details } = await service.engine.create({ goal: 'noop', max_iterations: 1 })
  for await (const _ of await service.engine.subscribe(details.run_id));
  const answer = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      body,
      headers: { 'content-type': 'application/json' },
    })
    const kept = [
      'cache-control',
      'x-content-type-options',
      'referrer-policy',
      'cross-origin-resource-policy',
      'x-frame-options',
      'etag',
      'content-type',
    ]
    return {
      headers: kept.flatMap((name) =>
        response.headers.has(name) ? [[name, response.headers.get(name)]] : [],
      ),
      body: await response.text(),
    }
  }
  const told = {
    run: details.run_id,
    get: await answer('GET', `/api/runs/${details.run_id}`),
    post: await answer('POST', '/api/runs', '{"goal":"noop","max_iterations":1}'),
  }
  return { port, run: details.run_id, reference: told }
}

/** 100 000 ended runs; the cursor of the page in the middle. */
async function fill(store) {
  const { sampleRun } = await import(`${process.env.RUNWRIGHT}/samples.js`)
  await store.open()
  let batch = []
  for (let i = 0; i < 100_000; i++) {
    const id = `01930000-0000-7000-8000-${String(i).padStart(12, '0')}`
    const goal = i % 2_000 === 0 ? 'find the needle' : `goal ${i}`
    const status = i % 1_000 === 7 ? 'failed' : 'achieved'
    batch.push(
      store.append(id, sampleRun(id, { createdAt: 1_700_000_000 + i, goal, status, records: 3 })),
    )
    if (batch.length === 2_000) {
      await Promise.all(batch)
      batch = []
    }
  }
  // The store's maintenance is done before anything is measured.
  await store.compact()
  const { next } = await store.list({ limit: 1, createdBefore: 1_700_050_000 })
  // The service opens the store again.
  store.open = async () => {}
  return next
}

/** Keeps posted runs, the newest 2 000 of them. */
function createRuns() {
  const kept = new Map([[reference.run, reference.get.body]])
  const template = JSON.parse(reference.post.body)
  return {
    find: (id) => kept.get(id),
    create(request) {
      if (typeof request?.goal !== 'string' || request.goal === '') return null
      const id = randomUUID()
      const now = new Date().toISOString()
      const text = JSON.stringify({ ...template, run_id: id, goal: request.goal, created_at: now })
      kept.set(id, text)
      if (kept.size > 2_001) kept.delete([...kept.keys()][1])
      return { id, text }
    },
  }
}

async function startNode() {
  const runs = createRuns()
  const getHeaders = Object.fromEntries(reference.get.headers)
  const postHeaders = Object.fromEntries(reference.post.headers)
  const server = createServer((request, response) => {
    const { url, method } = request
    if (method === 'GET' && url.startsWith('/api/runs/')) {
      const body = runs.find(url.slice('/api/runs/'.length))
      if (body === undefined) return response.writeHead(404).end()
      response.writeHead(200, { ...getHeaders, 'Content-Length': Buffer.byteLength(body) })
      return response.end(body)
    }
    if (method !== 'POST' || url !== '/api/runs') return response.writeHead(404).end()
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const run = runs.create(JSON.parse(Buffer.concat(chunks).toString()))
      if (run === null) return response.writeHead(422).end()
      const length = Buffer.byteLength(run.text)
      response.writeHead(201, {
        ...postHeaders,
        Location: `/api/runs/${run.id}`,
        'Content-Length': length,
      })
      response.end(run.text)
    })
  })
  return { port: await listen(server) }
}

async function startFastify() {
  const { default: fastify } = await import(peers.resolve('fastify'))
  const runs = createRuns()
  const app = fastify()
  app.get('/api/runs/:id', (request, reply) => {
    const body = runs.find(request.params.id)
    if (body === undefined) return reply.code(404).send()
    for (const [name, value] of reference.get.headers) reply.header(name, value)
    return reply.send(body)
  })
  app.post('/api/runs', (request, reply) => {
    const run = runs.create(request.body)
    if (run === null) return reply.code(422).send()
    for (const [name, value] of reference.post.headers) reply.header(name, value)
    return reply.code(201).header('location', `/api/runs/${run.id}`).send(run.text)
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: app.server.address().port }
}

async function startHono() {
  const { Hono } = await import(peers.resolve('hono'))
  const { getRequestListener } = await import(peers.resolve('@hono/node-server'))
  const runs = createRuns()
  const app = new Hono()
  app.get('/api/runs/:id', (context) => {
    const body = runs.find(context.req.param('id'))
    return body === undefined
      ? context.body(null, 404)
      : context.body(body, 200, Object.fromEntries(reference.get.headers))
  })
  app.post('/api/runs', async (context) => {
    const run = runs.create(await context.req.json())
    if (run === null) return context.body(null, 422)
    const headers = {
      ...Object.fromEntries(reference.post.headers),
      Location: `/api/runs/${run.id}`,
    }
    return context.body(run.text, 201, headers)
  })
  return { port: await listen(createServer(getRequestListener(app.fetch))) }
}

async function startExpress() {
  const { default: express } = await import(peers.resolve('express'))
  const runs = createRuns()
  const app = express()
  app.use(express.json())
  app.get('/api/runs/:id', (request, response) => {
    const body = runs.find(request.params.id)
    if (body === undefined) return response.status(404).end()
    response.set(Object.fromEntries(reference.get.headers)).send(body)
  })
  app.post('/api/runs', (request, response) => {
    const run = runs.create(request.body)
    if (run === null) return response.status(422).end()
    response
      .status(201)
      .set(Object.fromEntries(reference.post.headers))
      .location(`/api/runs/${run.id}`)
      .send(run.text)
  })
  return { port: await listen(createServer(app)) }
}

const starters = {
  'node:http': startNode,
  fastify: startFastify,
  hono: startHono,
  express: startExpress,
}
const started = await (starters[contender]?.() ?? startOurs(contender))
process.on('message', (what) => {
  if (what === 'cpu') {
    const { user, system } = process.cpuUsage()
    process.send(user + system)
  } else process.send(started.reference)
})
process.on('disconnect', () => process.exit())
process.send({ port: started.port, run: started.run ?? reference?.run })
