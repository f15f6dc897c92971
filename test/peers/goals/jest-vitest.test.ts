import { testTricks } from '../../agent/goals/sealed/trick-runs.js'
import { choice } from '../../helpers/choice.js'
import { sampled } from '../../agent/goals/sealed/sampled.js'
import { jestTricks, vitestTricks } from './tricks.js'

testTricks(
  `no trick against Jest and Vitest succeeds, except for those in open.ts (${choice})`,
  sampled([...jestTricks, ...vitestTricks]),
)
