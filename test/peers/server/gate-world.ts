/** A run that waits at a gate of a real service, and the page that shows it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import {
  defineTool, MemoryStore, type AgentEvent, type EngineOptions, type JsonObject, type RunEngine,
} from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { createRunService } from 'runwright/server'
import { scratch, testProvider, type Said } from '../../helpers/engine.js'
import { complaintsOf } from './browser.js'

/** A tool of which the page knows nothing. */
export const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys.',
  parameters: { type: 'object', additionalProperties: true },
  effect: 'unsafe',
  execute: () => Promise.resolve({ output: 'deployed', exitCode: 0 }),
})

export const A = Array.from({ length: 12 }, (_, i) => `line ${i + 1}\n`).join('')

const COMMAND = 'cd src\nfor file in *.js; do\n  node --check "$file"\ndone'

/** One turn that asks for calls of each kind. */
export const MIXED: Said = {
  text: 'The parser drops the last line. I mend it, add a test, and run the tests.',
  calls: [
    { tool: 'write_file', args: { path: 'src/a.js', content: A.replace('line 3', 'line three') } },
    { tool: 'write_file', args: { path: './src/new.js', content: 'export const made = 1\n' } },
    {
      tool: 'edit_file',
      args: { path: 'src/a.js', old_text: 'line three', new_text: 'line 3, mended' },
    },
    {
      tool: 'bash',
      args: { command: COMMAND, timeout_ms: 30_000 },
    },
    { tool: 'deploy', args: { target: 'staging', replicas: 2, note: 'first line\nsecond line' } },
  ],
  tokens: [1_200, 300],
}

export interface World {
  readonly page: Page
  readonly engine: RunEngine
  readonly server: Server
  readonly url: string
  readonly runId: string
  readonly file: (name: string) => string
  /** The payloads of the answers that the log has. */
  answers(): Promise<(AgentEvent & { kind: 'human_check_response' })['payload'][]>
}

export interface WorldOptions {
  readonly turns: readonly Said[]
  readonly request?: JsonObject
  readonly engine?: Partial<EngineOptions>
}

/** Starts a run whose model has these turns, and opens its page; every complaint of it fails. */
export async function openWorld(
  t: TestContext,
  context: BrowserContext,
  { turns, request = { approval: 'writes' }, engine: options = {} }: WorldOptions,
): Promise<World> {
  const top = scratch(t)
  const folder = join(top, 'shop')
  mkdirSync(join(folder, 'src'), { recursive: true })
  writeFileSync(join(folder, 'src/a.js'), A)
  writeFileSync(join(folder, 'logo.png'), Buffer.from([0x89, 0x50, 0, 1, 2, 3]))
  writeFileSync(join(folder, 'crlf.txt'), 'one\r\ntwo\r\n')
  const service = await createRunService({
    engine: {
      store: new MemoryStore(),
      roots: [folder],
      tools: [deploy],
      providers: [testProvider((_, n) => turns[n] ?? { stop: 'refusal' }), repairModel()],
      defaultModel: 'test:m',
      workspaceFolder: join(top, 'copies'),
      ...options,
    },
  })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const engine = service.engine as RunEngine
  const { details } = await engine.create({ goal: 'shell: test -e never', ...request })
  const runId = details.run_id
  const page = await context.newPage()
  const complaints = complaintsOf(page, /status of (404|409|413|422|503)|net::ERR_|WebSocket/)
  t.after(async () => {
    await page.close()
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
    assert.deepEqual(complaints, [])
  })
  await page.goto(`${url}#/runs/${runId}`)
  return {
    page,
    engine,
    server,
    url,
    runId,
    file: (name) => join(folder, name),
    answers: async () => (await eventsOf(engine, runId)).flatMap((event) =>
      event.kind === 'human_check_response' ? [event.payload] : [],
    ),
  }
}

/** What the log of a run has now. */
export async function eventsOf(engine: RunEngine, runId: string): Promise<AgentEvent[]> {
  const { last_seq } = await engine.get(runId)
  const events: AgentEvent[] = []
  for await (const batch of await engine.subscribe(runId)) {
    for (const { json } of batch) events.push(JSON.parse(json) as AgentEvent)
    if ((events.at(-1)?.seq ?? 0) >= last_seq) break
  }
  return events
}

/** Waits until keys and buttons of the gate act. */
export async function ready(page: Page): Promise<void> {
  await page.locator('section.gate[data-ready]').waitFor()
}

/** Waits for the entry of an answer: the run goes on, and what is far from the window is not drawn. */
export async function answered(page: Page, decision: 'approve' | 'reject'): Promise<void> {
  const find = page.getByLabel('Find in this run')
  await find.fill(decision)
  // Not all browsers scroll to what they fill.
  await find.evaluate((input) => input.scrollIntoView())
  await page.locator('article').getByText(`Answered: ${decision}`).waitFor()
}
