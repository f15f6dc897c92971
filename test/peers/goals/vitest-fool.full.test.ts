import { testThatTheyFool } from '../../agent/goals/sealed/trick-runs.js'
import { vitestTricks } from './tricks.js'

testThatTheyFool('tricks against Vitest work where only the exit code counts', vitestTricks)
