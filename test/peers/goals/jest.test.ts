import { testTricks } from '../../agent/goals/sealed/trick-runs.js'
import { choice } from './sample.js'
import { jestTricks, sampled } from './tricks.js'

testTricks(
  `no trick against Jest is achieved, but for the open ones (${choice})`,
  sampled(jestTricks),
)
