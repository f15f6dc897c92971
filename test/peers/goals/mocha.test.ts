import { testTricks } from '../../agent/goals/sealed/trick-runs.js'
import { choice } from '../../helpers/choice.js'
import { sampled } from '../../agent/goals/sealed/sampled.js'
import { avaTricks, mochaTricks, tapeTricks } from './tricks.js'

testTricks(
  `no trick against Mocha, AVA and tape succeeds, except for those in open.ts (${choice})`,
  sampled([...mochaTricks, ...avaTricks, ...tapeTricks]),
)
