import { testTricks } from '../../agent/goals/sealed/trick-runs.js'
import { choice } from '../../helpers/choice.js'
import { sampled } from '../../agent/goals/sealed/sampled.js'
import { jestTricks } from './tricks.js'

testTricks(
  `no trick against Jest is achieved, but for the open ones (${choice})`,
  sampled(jestTricks),
)
