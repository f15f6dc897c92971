import { testTricks } from '../../agent/goals/sealed/trick-runs.js'
import { choice } from './sample.js'
import { sampled, vitestTricks } from './tricks.js'

testTricks(
  `no trick against Vitest is achieved, but for the open ones (${choice})`,
  sampled(vitestTricks),
)
