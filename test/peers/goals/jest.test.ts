import { testTricks } from '../../agent/goals/sealed/trick-runs.js'
import { jestTricks } from './tricks.js'

testTricks('no trick against Jest is achieved, but for the open ones', jestTricks)
