import type { Clock } from '../../internal/time.js'
import type { ObjectStore } from '../object-store.js'
import type { RunStore } from '../store.js'
import type { TreeRules } from '../workspace/left-out.js'
import { boundedObjects, ObjectUse } from './object-use.js'

/** What the checkpoints of all runs of an engine have in common. */
export interface CheckpointSettings {
  readonly use: ObjectUse
  readonly rules: TreeRules
  readonly clock: Clock
}

/** The part of an engine's configuration that is about checkpoints. */
export interface CheckpointConfig {
  readonly clock: Clock
  readonly closed: readonly string[]
  readonly neverStore: readonly string[]
  readonly objects: ObjectStore | null
  readonly store: Pick<RunStore, 'shared'>
  readonly storeSecretFiles: boolean
}

/**
 * What the checkpoints of an engine need; null when it has nowhere to store contents. No use of
 * them outlasts the `signal`.
 */
export function checkpointSettings(
  config: CheckpointConfig,
  signal: AbortSignal,
): CheckpointSettings | null {
  const { clock, closed, neverStore, objects, store, storeSecretFiles } = config
  if (objects === null) return null
  // Elsewhere, secrets could be read by others.
  const keepsSecrets = storeSecretFiles && objects.exclusive === true
  return {
    use: new ObjectUse(boundedObjects(objects, signal), store.shared !== undefined),
    rules: { closed, neverStore, storeSecretFiles: keepsSecrets },
    clock,
  }
}
