import { testTricks } from './trick-runs.js'
import { programTricks } from './tricks/programs.js'
import { repositoryTricks } from './tricks/repositories.js'

testTricks('no trick against a check without a test runner is achieved, but for the open ones', [
  ...programTricks, ...repositoryTricks,
])
