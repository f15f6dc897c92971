/** Your own tool. A person approves each call, and changes the arguments of one. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  defineTool,
  MemoryStore,
  RunEngine,
  type AgentEvent,
  type ModelProvider,
} from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'

/** Writes an order to a file in the workspace. A real tool would call a shop. */
const order = defineTool({
  name: 'order',
  description: 'Orders pieces of an article.',
  parameters: {
    type: 'object',
    properties: {
      article: { type: 'string', minLength: 1 },
      pieces: { type: 'integer', minimum: 1 },
    },
    required: ['article', 'pieces'],
  },
  effect: 'unsafe', // never repeated after a crash
  async execute({ article, pieces }, { workspace }) {
    const change = await workspace.writeFile('orders.txt', `${pieces} × ${article}\n`)
    return { output: `ordered: ${pieces} × ${article}`, exitCode: 0, changes: [change] }
  },
})

// In place of a language model.
const model = new ScriptedModel([
  {
    text: 'We are short of lamps.',
    calls: [{ tool: 'order', args: { article: 'lamp', pieces: 1000 } }],
  },
  { text: 'Ordered.' },
])
const provider: ModelProvider = {
  id: 'script',
  description: 'a script',
  isLanguageModel: false,
  suggestions: ['it'],
  create: () => model,
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
const engine = await RunEngine.open({
  store: new MemoryStore(),
  roots: [folder],
  providers: [provider],
  defaultModel: 'script:it',
  tools: [order],
})
try {
  const { details } = await engine.create({ goal: 'shell: test -s orders.txt', approval: 'writes' })
  for await (const events of await engine.subscribe(details.run_id)) {
    for (const { json } of events) {
      const event = JSON.parse(json) as AgentEvent
      if (event.kind === 'tool_result') console.log(event.payload.output)
      if (event.kind !== 'human_check_required') continue
      for (const { call_id, tool, args } of event.payload.calls ?? []) {
        console.log(`the model calls ${tool} ${JSON.stringify(args)}; a person reduces it to 10`)
        await engine.resume(details.run_id, {
          decision: 'approve',
          edits: { [call_id]: { args: { ...args, pieces: 10 } } },
        })
      }
    }
  }
  const { status } = await engine.get(details.run_id)
  console.log(`${status}: ${readFileSync(join(folder, 'orders.txt'), 'utf8').trim()}`)
} finally {
  await engine.close()
  rmSync(folder, { recursive: true })
}
