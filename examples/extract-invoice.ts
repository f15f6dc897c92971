/** An agent that extracts an invoice: no folder, no check, and a result of a known form. */
import {
  checkSchema, defineTool, MemoryStore, RunEngine, type ModelProvider,
} from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'

const invoice = {
  type: 'object',
  properties: {
    number: { type: 'string' },
    currency: { enum: ['EUR', 'USD'] },
    total: { type: 'number', minimum: 0 },
  },
  required: ['number', 'currency', 'total'],
  additionalProperties: false,
} as const

// In place of a language model. Its first result has a text for the total, so it is asked again.
const model = new ScriptedModel([
  { calls: [{ tool: 'read_mail', args: { id: 7 } }] },
  { text: 'Invoice 2026-118 of the lamp shop, over 249.90 euros.' },
  {
    calls: [
      {
        tool: 'give_result',
        args: { number: '2026-118', currency: 'EUR', total: '249,90 €' },
      },
    ],
  },
  { text: '{"number": "2026-118", "currency": "EUR", "total": 249.9}' },
])
const provider: ModelProvider = {
  id: 'script',
  description: 'a script',
  isLanguageModel: false,
  suggestions: ['it'],
  create: () => model,
}
const readMail = defineTool({
  name: 'read_mail',
  description: 'Reads a mail.',
  parameters: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
  effect: 'read',
  execute: ({ id }) => `Mail ${id}: Rechnung 2026-118, Lampen GmbH, Summe 249,90 €`,
})

const engine = await RunEngine.open({
  store: new MemoryStore(),
  roots: [import.meta.dirname],
  providers: [provider],
  defaultModel: 'script:it',
  tools: [readMail],
})
try {
  const { details } = await engine.create({
    goal: 'result: extract the invoice in mail 7',
    workspace: 'none',
    result_schema: invoice,
  })
  for await (const events of await engine.subscribe(details.run_id)) {
    for (const { json } of events) {
      const { kind, payload } = JSON.parse(json) as { kind: string; payload: object }
      if (kind === 'result') console.log(payload)
    }
  }
  const { status, answer, result } = await engine.get(details.run_id)
  console.log(`${status}: ${answer}`)
  console.log(result, checkSchema(invoice, result).length === 0 ? 'is valid' : 'is not')
} finally {
  await engine.close()
}
