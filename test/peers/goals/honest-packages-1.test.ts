import { testHonestChanges } from '../../agent/goals/sealed/trick-runs.js'
import { packageChanges } from './honest.js'

testHonestChanges(
  'honest changes in some packages of the registry raise no false alarm',
  packageChanges.slice(0, 28),
)
