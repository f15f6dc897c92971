import { testThatTheyFool } from './trick-runs.js'
import { pythonScriptTricks, unittestTricks } from './tricks/python.js'

testThatTheyFool('tricks against unittest and scripts of Python make them exit with 0', [
  ...unittestTricks, ...pythonScriptTricks,
])
