import { choice } from '../../../helpers/choice.js'
import { sampled } from './sampled.js'
import { testTricks } from './trick-runs.js'
import { nodeSurroundingTricks } from './tricks/node-surroundings.js'

testTricks(
  `no trick with what surrounds node:test succeeds, except for those in open.ts (${choice})`,
  sampled(nodeSurroundingTricks),
)
