import { testHonestChanges } from '../../agent/goals/sealed/trick-runs.js'
import { packageChanges } from './honest.js'

testHonestChanges(
  'honest changes in packages of the registry raise no false alarm',
  packageChanges.filter((_, i) => i % 4 === 0),
)
