import { WorkspaceError } from '../errors.js'
import type { Executor } from '../executor.js'
import type { Workspace } from '../workspace/workspace.js'
import type { RunFolder } from './run-folder.js'

function refuse(): Promise<never> {
  const message = 'this run has no folder: it can neither use files nor run commands'
  return Promise.reject(new WorkspaceError('ERR_AGENT_WORKSPACE', message))
}

const NO_WORKSPACE: Workspace = {
  root: '',
  resolve: refuse,
  readFile: refuse,
  writeFile: refuse,
  list: refuse,
  changes: () => Promise.resolve([]),
}

/** What a run has in place of a folder; its tools find an empty path, and no file. */
export function noFolder(executor: Executor): RunFolder {
  return {
    workspace: NO_WORKSPACE,
    folder: {
      real: '',
      path: '',
      identity: null,
      check: () => Promise.resolve(),
      guard: (work) => work(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    },
    executor: {
      name: executor.name,
      killMarked: (mark) => executor.killMarked(mark),
      run: refuse,
    },
    checkpoints: null,
    isolated: null,
  }
}
