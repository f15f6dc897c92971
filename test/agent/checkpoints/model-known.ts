/** What is expected of folders and runs. */
import type { AgentError } from 'runwright/agent'
import type { Model, ModelFile } from '../../helpers/tree-model.js'

/** A folder and what it has; a copy belongs to one run, and may be gone. */
export interface Place {
  readonly path: string
  owner: string
  now: Model | null
}

export interface KnownCheckpoint {
  readonly id: string
  readonly ofOriginal: boolean
  readonly iteration: number
  readonly model: Model
}

/** What is expected of one run. */
export interface KnownRun {
  readonly id: string
  readonly isolated: boolean
  readonly applies: boolean
  /** Where it works: the folder itself, or a copy. */
  readonly place: Place
  readonly checkpoints: KnownCheckpoint[]
  readonly start: Model
  /** Where the changes began that an apply brings: those of its source, if they waited. */
  readonly began: Model
  isLive: boolean
  isDiscarded: boolean
  /** The folder of each iteration's end. */
  readonly ends: Map<number, Model>
}

/** A run that works now. */
export interface Work {
  readonly isolated: boolean
  readonly applies: boolean
  /** What its folder has when it begins. */
  readonly begins: Model
  readonly began: Model
  /** The iteration after which its goal is achieved. */
  readonly last: number
  place: Place | null
  isMet: boolean
  readonly ends: Map<number, Model>
  /** What its checkpoints may have, in this order. */
  readonly states: Model[]
}

export interface Sent {
  readonly runId: string
  readonly text: string
  /** The sender was told that it is stored. */
  isStored: boolean
}

/** What happened while an operation was under way. */
export interface Course<T> {
  readonly result: T | null
  readonly error: AgentError | null
  readonly died: boolean
  readonly stranger: Map<string, ModelFile | undefined> | null
}

export interface Plan {
  readonly seed: number
  /** The steps that are done, by their numbers. */
  readonly steps: readonly number[]
  readonly bigBytes: number
}
