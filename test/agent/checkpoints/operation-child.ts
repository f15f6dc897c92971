/**
 * Restores a checkpoint, applies or discards the changes of an isolated run, or drives a run that
 * applies them itself, and kills itself at a write: an append to the log, before or after it, or a
 * change of a file. See kills.test.ts.
 */
import { RunEngine } from '../../../lib/agent/engine.js'
import { NO_USAGE } from '../../../lib/agent/usage.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { DyingWrites } from '../../helpers/dying-writes.js'

interface KillPlan {
  readonly directory: string
  readonly root: string
  readonly runId: string
  readonly operation: 'restore' | 'apply' | 'discard' | 'run'
  readonly request: { readonly [name: string]: string | boolean }
  /** What runs do. */
  readonly command: string
  /** The write at which to die, from 1. */
  readonly killAt: number
}

const { directory, root, runId, operation, request, command, killAt } = JSON.parse(
  process.argv[2] ?? '{}',
) as KillPlan
const store = new FileStore({ directory })
const writes = await DyingWrites.of(store, directory, killAt)
const append = store.append.bind(store)
store.append = async (...given) => {
  // Of a run, what counts begins with the check that says that the goal is achieved.
  if (operation === 'run' && given[1].some(({ kind }) => kind === 'goal_check')) writes.begin()
  await append(...given)
}
let turns = 0
const engine = await RunEngine.open({
  store,
  roots: [root],
  sealedChecks: 'off',
  defaultModel: 'test:m',
  providers: [
    {
      id: 'test',
      description: 'turns of the test',
      isLanguageModel: false,
      suggestions: ['m'],
      create: () => ({
        name: 'test:m',
        isLanguageModel: false,
        contextWindow: null,
        prices: null,
        complete: () => {
          const call = { call_id: 'c', tool: 'bash', args: { command } }
          const calls = (turns += 1) === 1 ? [call] : []
          return Promise.resolve({
            message: { role: 'assistant', text: '', calls },
            reasoning: '',
            usage: NO_USAGE,
            stop: calls.length > 0 ? 'tool_calls' : 'end',
          })
        },
      }),
    },
  ],
})
if (operation === 'run') {
  const { details } = await engine.create(request)
  for await (const _ of await engine.subscribe(details.run_id)) turns += 0
} else {
  writes.begin()
  if (operation === 'discard') await engine.workspaces.discard(runId)
  else await engine.workspaces[operation](runId, request)
}
await engine.close()
