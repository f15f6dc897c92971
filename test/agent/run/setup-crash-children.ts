/** The child processes that setup.slow.test.ts starts. */
import { FileStore, processExecutor, RunEngine, type Executor } from 'runwright/agent'
import { testProvider, write } from '../../helpers/engine.js'
import type { Life } from '../../helpers/mortal-child.js'
import { FIX, installs } from './setup-support.js'

interface Args {
  readonly directory: string
  readonly root: string
  readonly counter: string
}

/** Its steps are `setup`, once the command has run, and the moments around its record. */
async function open({ directory, root, counter }: Args, life: Life): Promise<RunEngine> {
  const store = new FileStore({ directory })
  const append = store.append.bind(store)
  store.append = async (runId, records) => {
    const isEnd = records.some(({ kind }) => kind === 'setup_ended')
    await (isEnd ? life.around('setup_ended', () => append(runId, records))
      : append(runId, records))
  }
  const plain = processExecutor()
  const executor: Executor = {
    ...plain,
    killMarked: (mark) => plain.killMarked(mark),
    run: async (command, options) => {
      const result = await plain.run(command, options)
      if (command.includes(counter)) life.step('setup')
      return result
    },
  }
  life.begin()
  return await RunEngine.open({
    store, roots: [root], executor, sealedChecks: 'prefer', defaultModel: 'test:m',
    providers: [testProvider((_, call) => (call === 0 ? write({ 'lib/add.js': FIX }) : {}))],
  })
}

/** Drives a run to its end, or the one that a process before has left. */
export async function drive(args: Args, life: Life): Promise<void> {
  const engine = await open(args, life)
  const { runs } = await engine.list()
  const runId =
    runs[0]?.run_id ??
    (await engine.create({ goal: 'node-test', setup: installs(args.counter) })).details.run_id
  for await (const _ of await engine.subscribe(runId)) continue
  const { status } = await engine.get(runId)
  const events = await engine.events(runId, { after: 0, limit: 1_000 })
  const ends = events.filter(({ kind }) => kind === 'setup_ended').length
  await engine.close()
  life.say(JSON.stringify({ status, ends }))
}

/** Answers the gate of the run, unless that was done, and drives it to its end. */
export async function resume(args: Args, life: Life): Promise<void> {
  const engine = await open(args, life)
  const { runs } = await engine.list()
  const runId = runs[0]!.run_id
  if (runs[0]!.status === 'awaiting_human') await engine.resume(runId, { decision: 'approve' })
  for await (const _ of await engine.subscribe(runId)) continue
  const events = await engine.events(runId, { after: 0, limit: 1_000 })
  const { status } = await engine.get(runId)
  const ends = events.filter(({ kind }) => kind === 'setup_ended').length
  const checks = events.flatMap((event) => (event.kind === 'goal_check' ? [event.payload] : []))
  const { passed, failed } = checks.at(-1)?.counts ?? {}
  await engine.close()
  life.say(JSON.stringify({ status, ends, checks: { passed, failed } }))
}
