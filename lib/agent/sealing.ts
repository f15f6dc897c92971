/**
 * Which runs of an engine have sealed checks, and what those use.
 *
 * @module
 */
import type { SealedMode } from './events.js'
import type { Executor } from './executor.js'
import type { CopyFolders } from './goals/sealed/check-copies.js'
import { sealedModeOf } from './goals/sealed/sealed-mode.js'
import { packagesAbove } from './isolation/above.js'
import type { SealingFor } from './goals/sealed/sealing.js'

/** What sealed checks need of their engine. */
export interface SealingSettings {
  readonly sealedChecks: SealedMode
  /** Finds the executor of commands in copies. */
  readonly executor: () => Promise<Executor>
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  readonly sealedFolders: { open(): Promise<CopyFolders> }
}

/** Tells of each run of an engine which sealed checks it has. */
export function sealingFor(settings: SealingSettings): SealingFor {
  const { closed, executor, sealedChecks, sealedFolders } = settings
  return (runId, frozen, claimed) => {
    const { request } = frozen
    const mode = sealedModeOf(frozen, sealedChecks)
    if (mode === 'off') return null
    // Loaded for runs that need it, from their start: a newer version of this package that is
    // installed meanwhile must not take away the code of their checks.
    const code = import('./goals/sealed/sealed-check.js')
    code.catch(() => undefined)
    return {
      copiesLater: mode === 'prefer',
      async open(isolated, holdout, mayChange) {
        const { SealedChecks } = await code
        return new SealedChecks({
          mode,
          folders: () => sealedFolders.open(),
          executor: async () => claimed(await executor()),
          runId,
          allowsDependencyChanges: request.allow_dependency_changes === true,
          mayChange,
          closed,
          above: (cwd) => packagesAbove(cwd, closed),
          mounted: isolated?.readOnly ?? [],
          holdout,
        })
      },
    }
  }
}
