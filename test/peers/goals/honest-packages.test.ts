import { testHonestChanges } from '../../agent/goals/sealed/trick-runs.js'
import { packageChanges } from './honest.js'
import { choice, oneOfEach } from '../../helpers/choice.js'

testHonestChanges(
  `honest changes in packages of the registry raise no false alarm (${choice})`,
  oneOfEach(packageChanges, ({ runner }) => runner),
)
