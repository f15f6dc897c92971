/** A run in a private copy of a folder. Its net change is reviewed, and then applied. */
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileStore } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { createRunService, RunServiceClient } from 'runwright/server'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
const project = join(folder, 'project')
const files = {
  'package.json': '{ "type": "module" }\n',
  'sum.js': '// Adds.\nexport const sum = (a, b) => a - b\n',
  'sum.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sum } from './sum.js'
test('one and two are three', () => assert.equal(sum(1, 2), 3))
test('two and two are four', () => assert.equal(sum(2, 2), 4))
`,
}
mkdirSync(project)
for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)

const service = await createRunService({
  engine: {
    store: new FileStore({ directory: join(folder, 'data') }),
    roots: [project],
    providers: [repairModel()],
    defaultModel: 'builtin:repair',
  },
})
try {
  await using runs = RunServiceClient.inProcess(service)
  const { run_id } = await runs.create({ goal: 'node-test', workspace: 'isolated' })
  const { status, changes } = await runs.wait(run_id)
  console.log(`${status}, its changes are ${changes}`)
  const isSame = readFileSync(join(project, 'sum.js'), 'utf8') === files['sum.js']
  console.log(`the folder is ${isSame ? 'as' : 'not as'} before`)

  // The review: what the run changed, all in all.
  for (const change of (await runs.changes(run_id)).changes) {
    console.log(`${change.status} ${change.path} (+${change.additions} -${change.deletions})`)
    console.log(change.diff)
  }

  // Meanwhile somebody goes on working in the folder.
  appendFileSync(join(project, 'package.json'), '\n')
  const plan = await runs.apply(run_id, { dry_run: true })
  console.log(`to be applied: ${plan.applied.join(', ')}; conflicts: ${plan.conflicts.length}`)
  await runs.apply(run_id)
  console.log(`now the changes are ${(await runs.get(run_id)).changes}:`)
  console.log(readFileSync(join(project, 'sum.js'), 'utf8').trim())
} finally {
  await service.close({ graceMs: 0 })
  rmSync(folder, { recursive: true, force: true })
}
