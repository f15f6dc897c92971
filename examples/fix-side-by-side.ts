/** A run lets three others fix one file each, at the same time, and then checks the whole. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStore, type ModelProvider } from 'runwright/agent'
import { ScriptedModel, type ScriptedStep } from 'runwright/agent/testing'
import { createRunService, RunServiceClient } from 'runwright/server'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
const project = join(folder, 'project')
mkdirSync(project)
const operators = { sum: '+', difference: '-', product: '*' }
const names = Object.keys(operators) as (keyof typeof operators)[]
const source = (name: string, operator: string): string =>
  `export const ${name} = (a, b) => a ${operator} b\n`
writeFileSync(join(project, 'package.json'), '{ "type": "module" }\n')
for (const name of names) {
  writeFileSync(join(project, `${name}.js`), source(name, '/'))
  writeFileSync(
    join(project, `${name}.test.js`),
    `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ${name} } from './${name}.js'
test('the ${name} of six and two', () => assert.equal(${name}(6, 2), 6 ${operators[name]} 2))
`,
  )
}

// In place of a language model. The runs that are started have the model of the run that asks.
const begin: ScriptedStep = ({ run }) => {
  const name = names.find((one) => run.goal.includes(one))
  if (name !== undefined) {
    const args = { path: `${name}.js`, content: source(name, operators[name]) }
    return { calls: [{ tool: 'write_file', args }] }
  }
  const calls = names.map((part) => ({
    tool: 'delegate',
    args: { goal: `Repair ${part}.js`, check: `node --test ${part}.test.js` },
  }))
  return { text: 'Three faults that have nothing to do with each other.', calls }
}
const model = new ScriptedModel([begin, { text: 'Done.' }], { name: 'script:it' })
const provider: ModelProvider = {
  id: 'script',
  description: 'a script',
  isLanguageModel: false,
  suggestions: ['it'],
  create: () => model,
}

const service = await createRunService({
  engine: {
    store: new MemoryStore(),
    roots: [project],
    workspaceFolder: join(folder, 'copies'),
    providers: [provider],
    defaultModel: 'script:it',
    delegation: {}, // the host allows it: one level of at most four runs each
  },
})
try {
  await using runs = RunServiceClient.inProcess(service)
  const { run_id } = await runs.create({ goal: 'node-test', delegation: { children: 3 } })
  const goals = new Map<string, string>()
  for await (const { kind, payload } of runs.events(run_id)) {
    if (kind === 'goal_check') console.log(`check: ${payload.reason}`)
    if (kind === 'delegate_started') goals.set(payload.call_id, payload.goal)
    // In the order of the calls, whichever run has ended first.
    if (kind === 'tool_result') {
      console.log(`${goals.get(payload.call_id)}: ${payload.output.replace(/^Run \S+ /, '')}`)
    }
  }
  const { delegates, status } = await runs.get(run_id)
  console.log(`${status}, with the help of ${delegates} runs:`)
  for (const name of names) process.stdout.write(readFileSync(join(project, `${name}.js`), 'utf8'))
} finally {
  await service.close({ graceMs: 0 })
  rmSync(folder, { recursive: true, force: true })
}
