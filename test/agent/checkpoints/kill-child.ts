import { FileStore, RunEngine, type JsonObject } from 'runwright/agent'
import { follow, testProvider } from '../../helpers/engine.js'
import type { Life } from '../../helpers/mortal-child.js'

export interface OperationPlan {
  readonly directory: string
  readonly root: string
  readonly runId: string
  readonly operation: 'restore' | 'apply' | 'discard' | 'run'
  readonly request: JsonObject
  /** The command that the runs execute. */
  readonly command: string
}

/**
 * Restores a checkpoint, applies or discards the changes of an isolated run, or drives a run that
 * applies them itself. Steps: writes, of a run from the check on that says that its goal is met.
 */
export async function operate(plan: OperationPlan, life: Life): Promise<void> {
  const { directory, root, runId, operation, request, command } = plan
  const store = new FileStore({ directory })
  life.countAppends(store)
  await life.countFiles()
  const append = store.append.bind(store)
  store.append = async (...given) => {
    const isCheck = given[1].some(({ kind }) => kind === 'goal_check')
    if (operation === 'run' && isCheck) life.begin()
    await append(...given)
  }
  const engine = await RunEngine.open({
    store,
    roots: [root],
    sealedChecks: 'off',
    defaultModel: 'test:m',
    providers: [
      testProvider((_, turn) =>
        turn === 0 ? { calls: [{ tool: 'bash', args: { command } }] } : {},
      ),
    ],
  })
  if (operation === 'run') {
    const { details } = await engine.create(request)
    await follow(engine, details.run_id)
  } else {
    life.begin()
    if (operation === 'discard') await engine.workspaces.discard(runId)
    else await engine.workspaces[operation](runId, request)
  }
  await engine.close()
}
