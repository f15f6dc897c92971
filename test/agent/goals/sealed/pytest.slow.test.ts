import { choice } from '../../../helpers/choice.js'
import { sampled } from './sampled.js'
import { testTricks } from './trick-runs.js'
import { pytestTricks } from './tricks/pytest.js'

testTricks(
  `no trick against pytest succeeds, except for those in open.ts (${choice})`,
  sampled(pytestTricks),
)
