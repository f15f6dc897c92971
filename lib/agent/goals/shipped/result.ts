import type { GoalDefinition } from '../../goal.js'
import { RESULT_GOAL, resultGoal } from '../result-goal.js'
import { unsuitable } from './unsuitable.js'

const USAGE = 'result: <what to find out>'

/** Met by a result that matches the `result_schema` of the request; needs no folder. */
export const result: GoalDefinition = {
  name: RESULT_GOAL,
  description: 'Gives a result that matches the schema of the request',
  usage: USAGE,
  resolve: (_, argument) =>
    argument === ''
      ? Promise.reject(unsuitable('result', 'nothing is asked', `write \`${USAGE}\``))
      : Promise.resolve(resultGoal(argument)),
}
