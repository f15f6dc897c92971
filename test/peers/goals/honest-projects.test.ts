import { testHonestChanges } from '../../agent/goals/sealed/trick-runs.js'
import { ownChanges } from './honest.js'
import { choice, oneOfEach } from '../../helpers/choice.js'

testHonestChanges(
  `honest changes in small projects raise no false alarm (${choice})`,
  oneOfEach(ownChanges, ({ runner }) => runner),
)
