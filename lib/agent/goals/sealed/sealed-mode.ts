import type { PrivatePayloads, SealedMode } from '../../events.js'

const STRICTNESS: readonly SealedMode[] = ['off', 'prefer', 'require']

/** How strictly the goal of a run is checked in sealed copies; `byDefault` is the host's option. */
export function sealedModeOf(
  { goal, holdout, request }: Pick<PrivatePayloads['run_created'], 'goal' | 'holdout' | 'request'>,
  byDefault: SealedMode,
): SealedMode {
  if (goal.command === '' || goal.allow_test_changes) return 'off'
  if (holdout !== undefined) return 'require'
  const asked = request.sealed_checks ?? 'off'
  return STRICTNESS.indexOf(byDefault) > STRICTNESS.indexOf(asked) ? byDefault : asked
}
