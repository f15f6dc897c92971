import { choice } from '../../../helpers/choice.js'
import { sampled } from './sampled.js'
import { testTricks } from './trick-runs.js'
import { pythonScriptTricks, unittestTricks } from './tricks/python.js'

testTricks(
  `no trick against unittest and scripts of Python succeeds, except for those in open.ts (${choice})`,
  sampled([...unittestTricks, ...pythonScriptTricks]),
)
