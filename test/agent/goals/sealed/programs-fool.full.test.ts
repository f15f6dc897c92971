import { testThatTheyFool } from './trick-runs.js'
import { programTricks } from './tricks/programs.js'
import { repositoryTricks } from './tricks/repositories.js'
import { scriptDataTricks } from './tricks/script-data.js'

testThatTheyFool('tricks against checks without a test runner make them exit with 0', [
  ...programTricks, ...repositoryTricks, ...scriptDataTricks,
])
