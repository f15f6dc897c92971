import { testThatTheyFool } from '../../agent/goals/sealed/trick-runs.js'
import { jestTricks } from './tricks.js'

testThatTheyFool('tricks against Jest work where only the exit code counts', jestTricks)
