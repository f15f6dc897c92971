import { testTricks } from '../../agent/goals/sealed/trick-runs.js'
import { avaTricks, mochaTricks, tapeTricks } from './tricks.js'

testTricks('no trick against Mocha, AVA and tape is achieved, but for the open ones', [
  ...mochaTricks, ...avaTricks, ...tapeTricks,
])
