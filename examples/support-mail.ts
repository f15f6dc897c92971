/** An agent that is no programmer: it answers a customer's mail, as the shop's own rules say. */
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStore, RunEngine, type ModelProvider } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'

// In place of a language model.
const model = new ScriptedModel([
  {
    text: 'Reading the mail.',
    calls: [{ tool: 'read_file', args: { path: 'mail.txt' } }],
  },
  {
    text: 'A broken lamp: the rules say that we send a new one.',
    calls: [
      {
        tool: 'write_file',
        args: { path: 'answer.txt', content: 'Dear Ann,\n\na new lamp is on its way.\n' },
      },
    ],
  },
  { text: 'Answered.' },
])
const provider: ModelProvider = {
  id: 'script',
  description: 'a script',
  isLanguageModel: false,
  suggestions: ['it'],
  create: () => model,
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
writeFileSync(join(folder, 'mail.txt'), 'Hello, the lamp that I got is broken. Ann\n')
writeFileSync(join(folder, 'AGENTS.md'), '# Rules\n\nBroken goods: send a new piece.\n')

const engine = await RunEngine.open({
  store: new MemoryStore(),
  roots: [folder],
  providers: [provider],
  defaultModel: 'script:it',
  systemPrompt: ({ request }) => `You answer mails to a shop for ${request.metadata['shop']}.`,
  instructions: 'Write the answer to mail.txt into answer.txt. Use no more than three sentences.',
})
try {
  const { details } = await engine.create({
    goal: 'answer the mail',
    check: 'grep -q ^Dear answer.txt',
    instructions: 'Sign nothing: a human does.',
    metadata: { shop: 'lamps' },
  })
  for await (const _ of await engine.subscribe(details.run_id)) {
    // until its end
  }
  console.log(`the model was told:\n\n${model.requests[0]?.system}\n`)
  const { status } = await engine.get(details.run_id)
  console.log(`${status}:\n\n${readFileSync(join(folder, 'answer.txt'), 'utf8')}`)
} finally {
  await engine.close()
  rmSync(folder, { recursive: true })
}
