import { FileStore, RunEngine } from 'runwright/agent'
import type { Life } from '../../helpers/mortal-child.js'

/** Repairs a folder over a file store until it is killed; says the id of the run. */
export async function repair(
  { directory, cwd }: { readonly directory: string; readonly cwd: string },
  life: Life,
): Promise<void> {
  const engine = await RunEngine.open({ store: new FileStore({ directory }), roots: [cwd] })
  const { details } = await engine.create({ goal: 'repair', check: 'node --test', cwd })
  life.say(details.run_id)
}
