/**
 * How the runs of an engine try patches: nothing of it is loaded before the first of them does.
 *
 * @module
 */
import os from 'node:os'
import type { Executor } from './executor.js'
import { Slots } from './trials/slots.js'
import type { TrialFolders, Trials } from './trials/trials.js'
import type { TryingFor } from './trials/trying.js'

/** Commands of trials that run at the same time, at most. */
const MAX_JOBS = 8

/** What trials need of their engine. */
export interface TryingSettings {
  /** Finds the executor of commands in copies. */
  readonly executor: () => Promise<Executor>
  readonly sealedFolders: { open(): Promise<TrialFolders> }
}

/** See the comment of this file. The machine's cores are shared by all runs of the engine. */
export function tryingFor(settings: TryingSettings): TryingFor {
  const { executor, sealedFolders } = settings
  const jobs = Math.min(os.availableParallelism(), MAX_JOBS)
  const slots = new Slots(jobs)
  return (runId, claimed) => {
    let trials: Promise<Trials> | undefined
    const open = async (): Promise<Trials> => {
      const { Trials: Opened } = await import('./trials/trials.js')
      return new Opened({
        runId,
        slots,
        jobs,
        folders: () => sealedFolders.open(),
        executor: async () => claimed(await executor()),
        watch: async () => (await import('./trials/watch-tests.js')).testWatch,
      })
    }
    return {
      try: async (request, place, control) => {
        trials ??= open()
        return await (await trials).try(request, place, control)
      },
      close: async () => {
        const opened = await trials
        trials = undefined
        await opened?.close()
      },
    }
  }
}
