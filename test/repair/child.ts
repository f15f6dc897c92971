import { FileStore, RunEngine } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import type { Life } from '../helpers/mortal-child.js'

/** Repairs a folder over a file store until it is killed; says the id of the run. */
export async function repair(
  { directory, cwd }: { readonly directory: string; readonly cwd: string },
  life: Life,
): Promise<void> {
  const engine = await RunEngine.open({
    store: new FileStore({ directory }), roots: [cwd], providers: [repairModel()],
  })
  const request = { goal: 'repair', check: 'node --test', model_name: 'builtin:repair', cwd }
  const { details } = await engine.create(request)
  life.say(details.run_id)
}
