/**
 * The measured process of `fanout.mjs`: runs of the real engine, and one way to bring their events
 * to WebSocket subscribers. A model call waits until the parent requests a burst: then it requests
 * CALLS tool calls at once, whose events follow. @module
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CALLS = 8
const [contender, runCount] = process.argv.slice(2)
const { FileStore, RunEngine, defineTool } = await import(`${process.env.RUNWRIGHT}/agent/index.js`)
const peers = createRequire(new URL('../../peers/package.json', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

/** Waiting model calls, one for each run. @type {Set<() => void>} */
const waiting = new Set()
let onWait = () => {}
let calls = 0

const engine = await RunEngine.open({
  // The log is on disk, so memory does not grow with it.
  store: new FileStore({ directory: join(scratch, 'data'), sync: 'none' }),
  roots: [scratch],
  cwdPolicy: 'allow',
  maxConcurrentRuns: 1_000,
  maxQueuedRuns: 1_000,
  defaultModel: 'burst:m',
  tools: [
    defineTool({
      name: 'note',
      description: 'does nothing',
      parameters: {
        type: 'object',
        properties: { n: { type: 'integer' }, text: { type: 'string' } },
      },
      effect: 'read',
      execute: ({ n }) => `noted ${n} ${'.'.repeat(120)}`,
    }),
  ],
  providers: [
    {
      id: 'burst',
      description: 'asks for many tools at once',
      isLanguageModel: false,
      suggestions: ['m'],
      create: () => ({
        name: 'burst:m',
        isLanguageModel: false,
        // A run keeps only the conversation of its next model call: a small window is soon full.
        contextWindow: 8_000,
        prices: null,
        complete: async () => {
          await new Promise((resolve) => {
            waiting.add(resolve)
            onWait()
          })
          return {
            message: {
              role: 'assistant',
              text: '',
              calls: Array.from({ length: CALLS }, () => ({
                call_id: `c${++calls}`,
                tool: 'note',
                args: { n: calls, text: 'x'.repeat(100) },
              })),
            },
            reasoning: '',
            usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 },
            stop: 'tool_calls',
          }
        },
      }),
    },
  ],
})

/** The contenders: the whole service, and a server on `ws` that follows each run once. */
const contenders = {
  async runwright() {
    const { createRunService } = await import(`${process.env.RUNWRIGHT}/server/index.js`)
    const service = await createRunService({ engine })
    const server = createServer(service.handler)
    service.attach(server)
    return server
  },
  async ws() {
    const { WebSocketServer } = peers('ws')
    const server = createServer()
    const sockets = new WebSocketServer({ noServer: true, maxPayload: 4_096 })
    const subscribers = new Map()
    const follow = async (runId) => {
      const own = new Set()
      subscribers.set(runId, own)
      for await (const events of await engine.subscribe(runId, { after: -1 }))
        for (const { json } of events) for (const socket of own) socket.send(json)
    }
    server.on('upgrade', (request, socket, head) => {
      const runId = /^\/api\/ws\/([^?]+)/.exec(request.url)[1]
      sockets.handleUpgrade(request, socket, head, (connection) => {
        if (!subscribers.has(runId)) void follow(runId)
        const own = subscribers.get(runId)
        own.add(connection)
        connection.on('close', () => own.delete(connection))
      })
    })
    return server
  },
}

const allWait = () =>
  new Promise((resolve) => {
    onWait = () => waiting.size === Number(runCount) && resolve()
    onWait()
  })

const runs = []
for (let i = 0; i < Number(runCount); i++) {
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1_000 })
  runs.push(details.run_id)
}
await allWait()

const cpuUs = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}
const settle = async () => {
  for (let i = 0; i < 6; i++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const heads = async () => {
  // Records may be written with later ones; once the model waits, all have been written.
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setTimeout(resolve, 5))
  const seqs = {}
  for (const run of runs) seqs[run] = (await engine.get(run)).last_seq
  return seqs
}

const orders = {
  /** One burst in every run; resolves once all events are written. */
  async burst() {
    const before = cpuUs()
    const released = [...waiting]
    waiting.clear()
    for (const release of released) release()
    await allWait()
    return { heads: await heads(), cpuBefore: before }
  },
  cpu: () => ({ cpu: cpuUs() }),
  async memory() {
    await settle()
    const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
    return { rss, heapUsed, external, arrayBuffers }
  },
  heads: async () => ({ heads: await heads() }),
}

process.on(
  'message',
  (order) => void Promise.resolve(orders[order]()).then((answer) => process.send(answer)),
)
process.on('disconnect', () => process.exit())
const server = await contenders[contender]()
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port, runs }))
