import { testThatTheyFool } from './trick-runs.js'
import { programTricks } from './tricks/programs.js'
import { repositoryTricks } from './tricks/repositories.js'

testThatTheyFool('tricks against checks without a test runner make them exit with 0', [
  ...programTricks, ...repositoryTricks,
])
