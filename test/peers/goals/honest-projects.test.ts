import { testHonestChanges } from '../../agent/goals/sealed/trick-runs.js'
import { ownChanges } from './honest.js'

testHonestChanges('honest changes in small projects raise no false alarm', ownChanges)
