/**
 * Messages between `TrackedFolder` and the worker that looks at folders. Whole trees stay in the
 * worker; what crosses is small, or is transferred.
 *
 * @module
 */
import type { LeftOut } from '../tree.js'
import type { AllTreeRules } from './left-out.js'
import type { Batch } from './tree-batches.js'

/** What a look found. */
export interface Look {
  readonly checkpointId: string
  readonly files: number
  readonly bytes: number
  readonly leftOut: readonly LeftOut[]
}

/** To the worker. A job is one look at a folder, `tracked` numbers what is tracked. */
export type ToTreeWorker =
  | {
      readonly t: 'look'
      readonly job: number
      readonly tracked: number
      readonly folder: string
      readonly rules: AllTreeRules
      readonly storeContents: boolean
      /** False: nothing is sent, but what was found. */
      readonly sends: boolean
      readonly previous: string | null
    }
  | { readonly t: 'stored'; readonly job: number; readonly batch: number }
  | {
      readonly t: 'not stored'
      readonly job: number
      /** Path and hash, in turns. */
      readonly pairs: readonly string[]
    }
  | { readonly t: 'abort'; readonly job: number }
  | { readonly t: 'forget'; readonly tracked: number }

/** From the worker. */
export type FromTreeWorker =
  | ({ readonly t: 'batch'; readonly job: number; readonly number: number } & Batch)
  | { readonly t: 'not stored'; readonly job: number; readonly checkpointId: string }
  | ({ readonly t: 'done'; readonly job: number; readonly leftOut: readonly LeftOut[] } & Look)
  | {
      readonly t: 'failed'
      readonly job: number
      readonly message: string
      readonly code: string | undefined
    }
