import type { EngineConfig } from '../config.js'
import { ObjectUse } from './object-use.js'
import type { CheckpointSettings } from './run-checkpoints.js'

/** What the checkpoints of an engine need; null when its runs have none. */
export function checkpointSettings(config: EngineConfig): CheckpointSettings | null {
  const { clock, closed, neverStore, objects, store, storeSecretFiles } = config
  if (objects === null) return null
  // Elsewhere, secrets could be read by others.
  const keepsSecrets = storeSecretFiles && objects.exclusive === true
  return {
    use: new ObjectUse(objects, store.shared !== undefined),
    rules: { closed, neverStore, storeSecretFiles: keepsSecrets },
    clock,
  }
}
