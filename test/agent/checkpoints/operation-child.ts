/**
 * Restores a checkpoint, or applies the changes of an isolated run, and kills itself at a write: an
 * append to the log, before or after it, or a change of a file. See kills.test.ts.
 */
import { killAtWrite } from '../../helpers/kill-at-write.js'
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

const { directory, root, runId, operation, request, killAt } = JSON.parse(
  process.argv[2] ?? '{}',
) as KillPlan
const store = new FileStore({ directory })
const { begin, count } = await killAtWrite(store, directory, killAt)
const engine = await RunEngine.open({ store, roots: [root] })
begin()
await engine.workspaces[operation](runId, request)
console.log(count())
await engine.close()
