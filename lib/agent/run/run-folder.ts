import { RunCheckpoints } from '../checkpoints/run-checkpoints.js'
import type { CheckpointSettings } from '../checkpoints/settings.js'
import type { Executor, IsolatedCopy } from '../executor.js'
import { explain } from '../workspace/files.js'
import type { Captured } from '../workspace/tracked-folder.js'
import { openPinned, type PinnedWorkspace } from '../workspace/open.js'
import { Confinement, isInside } from '../workspace/paths.js'
import type { FolderIdentity, UsedFolder } from '../workspace/pinned-folder.js'
import type { WorkspaceOptions } from '../workspace/workspace.js'

/** The pinned folder of a run, and what works in it. */
export interface RunFolder extends Pick<PinnedWorkspace, 'workspace'> {
  readonly folder: UsedFolder
  readonly executor: Executor
  /** Null when the run has none. */
  readonly checkpoints: RunCheckpoints | null
  /** Of a run that works in a copy. */
  readonly isolated: IsolatedCopy | null
}

export interface RunFolderOptions extends WorkspaceOptions {
  readonly checkpoints: CheckpointSettings | null
  /** The copy of an isolated run, which is its folder. */
  readonly isolated?: IsolatedCopy | undefined
  /** The durable checkpoint that the folder holds. @defaultValue not known */
  readonly holds?: Captured | null | undefined
}

/** Opens the folder of a run; see {@link openPinned}. */
export async function openRunFolder(
  executor: Executor,
  options: RunFolderOptions,
  cwd: string,
  before: FolderIdentity | null,
  onLost: (error: Error) => void,
): Promise<RunFolder> {
  const { checkpoints, roots, closed, holds = null, isolated } = options
  const pinned = await openPinned(cwd, { roots, closed }, before, onLost)
  // A copy lies in a folder that is closed to all others.
  const settings = checkpoints && { ...checkpoints, rules: { ...checkpoints.rules, closed } }
  return {
    ...pinned,
    executor: pinnedExecutor(executor, pinned, isolated),
    checkpoints: settings && new RunCheckpoints(settings, pinned.folder, holds),
    isolated: isolated ?? null,
  }
}

/**
 * An executor whose commands run in the pinned folder or in a folder below it, and in no other that
 * is put in its place. A command in a folder outside, which only a tool of the host can name, runs
 * there.
 */
function pinnedExecutor(
  executor: Executor,
  { workspace, folder }: PinnedWorkspace,
  isolated: IsolatedCopy | undefined,
): Executor {
  const inside = new Confinement(folder.real, [], folder.path)
  return {
    name: executor.name,
    mountsFolders: async () => (await executor.mountsFolders?.()) ?? false,
    killMarked: (mark) => executor.killMarked(mark),
    run: async (command, given) =>
      await folder.guard(async () => {
        const options = isolated === undefined ? given : { ...given, isolated }
        if (!isInside(options.cwd, folder.real)) {
          await folder.check()
          return await executor.run(command, options)
        }
        const isRoot = options.cwd === folder.real
        const cwd = isRoot ? folder.real : await workspace.resolve(options.cwd)
        await using entered = await explain(cwd, () => inside.openFolder(cwd))
        return await executor.run(command, {
          ...options,
          cwd,
          cwdDescriptor: entered.descriptor,
          onStart: async (pgid) => {
            await folder.check()
            await options.onStart?.(pgid)
          },
        })
      }),
  }
}
