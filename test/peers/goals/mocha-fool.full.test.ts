import { testThatTheyFool } from '../../agent/goals/sealed/trick-runs.js'
import { avaTricks, mochaTricks, tapeTricks } from './tricks.js'

testThatTheyFool('tricks against Mocha, AVA and tape work where only the exit code counts', [
  ...mochaTricks, ...avaTricks, ...tapeTricks,
])
