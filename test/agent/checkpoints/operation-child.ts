/**
 * Restores a checkpoint, or applies the changes of an isolated run, and kills itself at a write: an
 * append to the log, before or after it, or a change of a file. See kills.test.ts.
 */
import { constants } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { RunEngine } from '../../../lib/agent/engine.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'

interface KillPlan {
  readonly directory: string
  readonly root: string
  readonly runId: string
  readonly operation: 'restore' | 'apply'
  readonly request: { readonly [name: string]: string | boolean }
  /** The write at which to die, from 1. */
  readonly killAt: number
}

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>

const { directory, root, runId, operation, request, killAt } = JSON.parse(
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
const engine = await RunEngine.open({ store, roots: [root] })
writes = 0
await engine.workspaces[operation](runId, request)
console.log(writes)
await engine.close()
