/** The child processes that crashes.slow.test.ts starts. */
import { readdirSync } from 'node:fs'
import { FileStore, RunEngine } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import type { Life } from '../../../helpers/mortal-child.js'

/**
 * Drives a run with held-out tests over a file store until it ends, and says how. Its first step is
 * when it is durable that they are evaluated.
 */
export async function evaluate(
  { directory, root }: { readonly directory: string; readonly root: string },
  life: Life,
): Promise<void> {
  const store = new FileStore({ directory })
  const append = store.append.bind(store)
  store.append = async (runId, records) => {
    await append(runId, records)
    if (records.some(({ kind }) => kind === 'holdout_evaluation')) life.step('evaluation')
  }
  life.begin()
  const engine = await RunEngine.open({
    store, roots: [root], maxRecoveries: 10,
    providers: [repairModel()], defaultModel: 'builtin:repair',
  })
  const { runs } = await engine.list()
  const holdout = { files: { 'held/check.sh': 'test -f code' }, command: 'sh held/check.sh' }
  const runId =
    runs[0]?.run_id ??
    (await engine.create({ goal: 'shell: test -f code', holdout })).details.run_id
  for await (const _ of await engine.subscribe(runId)) continue
  const { end_reason, assurance } = await engine.get(runId)
  const events = await engine.events(runId, { after: 0, limit: 1_000 })
  const evaluations = events.filter(({ kind }) => kind === 'holdout_evaluation').length
  await engine.close()
  const copies = readdirSync(`${directory}/workspaces/.sealed`)
  life.say(JSON.stringify({ end_reason, holdout: assurance?.holdout, evaluations, copies }))
}
