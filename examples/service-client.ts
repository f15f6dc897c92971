/** A client that starts a run, answers its gates, and later reads part of its log again. */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStore } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { bearerKeys, createRunService, RunServiceClient, RunServiceError } from 'runwright/server'

const project = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
writeFileSync(join(project, 'sum.js'), 'export const sum = (a, b) => a - b\n')
writeFileSync(
  join(project, 'sum.test.js'),
  `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sum } from './sum.js'
test('two and two are four, and one and two are three', () => {
  assert.equal(sum(2, 2), 4)
  assert.equal(sum(1, 2), 3)
})
`,
)
writeFileSync(join(project, 'package.json'), '{ "type": "module" }\n')

// The service in its host. A client elsewhere only needs its URL and a key.
const key = 'example-key-0123456789'
const service = await createRunService({
  engine: {
    store: new MemoryStore(),
    roots: [project],
    providers: [repairModel()],
    defaultModel: 'builtin:repair',
  },
  authorize: bearerKeys({ example: key }),
})
const server = createServer(service.handler).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

try {
  await using runs = new RunServiceClient({ baseUrl, key, trustEnv: false })
  const { run_id } = await runs.create({ goal: 'node-test', hitl_enabled: true, max_iterations: 5 })
  let last = 0
  for await (const event of runs.events(run_id)) {
    last = event.seq
    if (event.kind === 'goal_check') console.log(`check: ${event.payload.reason}`)
    if (event.kind === 'human_check_required') {
      console.log(`gate: ${event.payload.summary}`)
      await runs.resume(run_id, { decision: 'approve', gate_id: event.payload.gate_id })
    }
  }
  console.log(`${(await runs.get(run_id)).status}, ${last} events`)

  // The log is kept: any part of it can be read again.
  for await (const event of runs.events(run_id, { after: last - 1 })) {
    console.log(`again: ${event.kind}`)
  }

  const refused = await runs.abort(run_id).catch((error: unknown) => error)
  if (refused instanceof RunServiceError) console.log(`refused: ${refused.status} ${refused.code}`)
} finally {
  await service.close({ graceMs: 0 })
  server.closeAllConnections()
  server.close()
  rmSync(project, { recursive: true, force: true })
}
