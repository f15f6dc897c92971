/** Two models attempt one goal, each in a copy of the folder. The first that achieves it wins. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStore, type ModelProvider } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { createRunService, RunServiceClient } from 'runwright/server'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
const project = join(folder, 'project')
mkdirSync(project)
for (const [name, text] of Object.entries({
  'package.json': '{ "type": "module" }\n',
  'sum.js': 'export const sum = (a, b) => a - b\n',
  'sum.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sum } from './sum.js'
test('one and two are three', () => assert.equal(sum(1, 2), 3))
test('two and two are four', () => assert.equal(sum(2, 2), 4))
`,
})) {
  writeFileSync(join(project, name), text)
}

// In place of language models: one repairs the sum, and one takes an hour to think about it.
const fix = { path: 'sum.js', content: 'export const sum = (a, b) => a + b\n' }
const models = [
  new ScriptedModel([{ delay_ms: 3_600_000, text: 'I see.' }], { name: 'script:thorough' }),
  new ScriptedModel([{ calls: [{ tool: 'write_file', args: fix }] }, { text: 'Repaired.' }], {
    name: 'script:quick',
  }),
]
const provider: ModelProvider = {
  id: 'script',
  description: 'two scripts',
  isLanguageModel: false,
  suggestions: ['thorough', 'quick'],
  create: (name) => models.find((model) => model.name === `script:${name}`)!,
}

const service = await createRunService({
  engine: {
    store: new MemoryStore(),
    roots: [project],
    workspaceFolder: join(folder, 'copies'),
    providers: [provider],
    defaultModel: 'script:quick',
  },
})
try {
  await using runs = RunServiceClient.inProcess(service)
  const { run_id } = await runs.create({
    goal: 'node-test',
    attempts: { count: 2, models: ['script:thorough', 'script:quick'], choose: 'first' },
  })
  for await (const { kind, payload } of runs.events(run_id)) {
    if (kind === 'attempt_started') console.log(`attempt ${payload.attempt}: ${payload.model_name}`)
    if (kind === 'attempt_chosen') console.log(`attempt ${payload.attempt} wins: ${payload.why}`)
    if (kind === 'run_end') console.log(`${payload.status}: ${payload.reason}`)
  }
  const { attempts, changes, usage } = await runs.get(run_id)
  for (const { model_name, status, reason } of attempts?.runs ?? [])
    console.log(`${model_name} ${status}: ${reason}`)
  console.log(`the changes are ${changes}, after ${usage.model_calls} calls of models in all:`)
  console.log(readFileSync(join(project, 'sum.js'), 'utf8').trim())
} finally {
  await service.close({ graceMs: 0 })
  rmSync(folder, { recursive: true, force: true })
}
