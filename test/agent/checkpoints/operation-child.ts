/**
 * Restores a checkpoint, applies or discards the changes of an isolated run, or drives a run that
 * applies them itself, and kills itself at a write: an append to the log, before or after it, or a
 * change of a file. See kills.test.ts.
 */
import { constants } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { RunEngine } from '../../../lib/agent/engine.js'
import { NO_USAGE } from '../../../lib/agent/usage.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'

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

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>

const { directory, root, runId, operation, request, command, killAt } = JSON.parse(
  process.argv[2] ?? '{}',
) as KillPlan
let writes = -Infinity

function write(): void {
  writes += 1
  if (writes === killAt) process.kill(process.pid, 'SIGKILL')
}

const store = new FileStore({ directory })
const append = store.append.bind(store)
store.append = async (...given) => {
  // Of a run, what counts begins with the check that says that the goal is achieved.
  if (operation === 'run' && given[1].some(({ kind }) => kind === 'goal_check')) writes = 0
  write()
  await append(...given)
  write()
}
const handle = await promises.open(directory)
await handle.close()
const targets: readonly [object, readonly string[]][] = [
  [promises, ['link', 'mkdir', 'open', 'rename', 'rmdir', 'symlink', 'unlink']],
  [Object.getPrototypeOf(handle) as object, ['chmod', 'datasync', 'writeFile']],
]
for (const [target, names] of targets) {
  for (const name of names) {
    const functions = target as Record<string, AnyFunction>
    const original = functions[name]!
    functions[name] = async function (...args) {
      const isChange = name !== 'open' || (Number(args[1]) & constants.O_CREAT) !== 0
      if (isChange) write()
      return await original.apply(this, args)
    }
  }
}
syncBuiltinESMExports()
let turns = 0
const engine = await RunEngine.open({
  store,
  roots: [root],
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
  writes = 0
  if (operation === 'discard') await engine.workspaces.discard(runId)
  else await engine.workspaces[operation](runId, request)
}
console.log(writes)
await engine.close()
