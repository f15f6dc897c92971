import { readHeldOutTests } from '../../goals/holdout/encrypted.js'
import { MAX_EVALUATIONS, type HoldoutRun } from '../../goals/holdout/held-out-tests.js'
import type { StepContext } from '../step-context.js'

/** The held-out tests of a run, for its checks; null for a run without any. */
export function holdoutRun({ log, store }: Pick<StepContext, 'log' | 'store'>): HoldoutRun | null {
  const key = log.state.frozen.holdout?.key
  if (key === undefined) return null
  return {
    evaluations: () => log.state.holdoutEvaluations,
    tests: () => readHeldOutTests(store.holdouts, log.runId, key),
    begin: async (number) => {
      const { iteration } = log.state.head.details
      const payload = { number, of: MAX_EVALUATIONS }
      await log.append([{ kind: 'holdout_evaluation', iteration, payload }])
    },
  }
}
