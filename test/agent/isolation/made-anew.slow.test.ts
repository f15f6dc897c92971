/** Copies that a run cannot go on in are made anew, of the folder and the newest checkpoint. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore, processExecutor, type Executor, type RunEngine } from 'runwright/agent'
import { follow, openEngine, scratch, testProvider } from '../../helpers/engine.js'

interface Case {
  readonly name: string
  /** What happens while the service is down, in the folder of the copy. */
  readonly meanwhile: (place: string) => void
  readonly mounted: boolean
}

const cases: readonly Case[] = [
  {
    name: 'a copy that the disk may not have whole after the machine was started',
    meanwhile: (place) => {
      const description = JSON.parse(readFileSync(join(place, 'copy.json'), 'utf8')) as object
      writeFileSync(join(place, 'copy.json'), JSON.stringify({ ...description, boot: 'earlier' }))
    },
    mounted: false,
  },
  {
    name: 'a copy whose description the disk does not have',
    meanwhile: (place) => truncateSync(join(place, 'copy.json')),
    mounted: false,
  },
  {
    name: 'a copy whose packages cannot be mounted any more',
    meanwhile: () => undefined,
    mounted: true,
  },
]

for (const { name, meanwhile, mounted } of cases) {
  test(`${name} is made anew`, async (t) => {
    const [cwd, directory] = [scratch(t), scratch(t)]
    const packages = join(cwd, 'node_modules')
    for (let i = 0; i < 250; i++) mkdirSync(join(packages, `p${i}`), { recursive: true })
    writeFileSync(join(cwd, 'a.txt'), 'original')
    writeFileSync(join(cwd, '.env'), 'KEY=1')
    const plain = processExecutor()
    const mounting: Executor = {
      name: 'mounting',
      run: (command, options) => plain.run(command, options),
      killMarked: (mark) => plain.killMarked(mark),
      mountsFolders: () => Promise.resolve(true),
    }
    const first = await open(t, cwd, directory, mounted ? mounting : plain)
    const request = { goal: 'shell: false', workspace: 'isolated', hitl_enabled: true } as const
    const { details } = await first.create({ ...request, max_iterations: 2 })
    const id = details.run_id
    await follow(first, id, ({ kind }) => kind === 'human_check_required')
    await first.close()
    const place = join(directory, 'workspaces', id)
    const root = join(place, readdirSync(place).find((one) => cwd.endsWith(`/${one}`))!)
    assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'run')
    assert.equal(readdirSync(join(root, 'node_modules')).length, mounted ? 0 : 250)
    // Partly on the disk, as after a loss of power.
    for (const file of ['a.txt', '.env']) truncateSync(join(root, file))
    meanwhile(place)

    const second = await open(t, cwd, directory, plain)
    await second.resume(id, { decision: 'approve' })
    await follow(second, id)
    assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'run')
    assert.equal(readFileSync(join(root, '.env'), 'utf8'), 'KEY=1')
    assert.equal(readdirSync(join(root, 'node_modules')).length, 250)
    assert.deepEqual(readdirSync(join(directory, 'workspaces')), [id])
    assert.equal(readFileSync(join(cwd, 'a.txt'), 'utf8'), 'original')
  })
}

/** An engine whose model writes a file in the first iteration only. */
async function open(
  t: TestContext,
  cwd: string,
  directory: string,
  executor: Executor,
): Promise<RunEngine> {
  const { engine } = await openEngine(t, {
    cwd,
    store: new FileStore({ directory }),
    checkpoints: 'auto',
    executor,
    providers: [
      testProvider(({ messages, run }) =>
        run.iteration > 1 || messages.at(-1)?.role === 'tool'
          ? {}
          : { calls: [{ tool: 'write_file', args: { path: 'a.txt', content: 'run' } }] },
      ),
    ],
  })
  return engine
}
