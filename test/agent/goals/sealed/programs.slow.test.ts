import { choice } from '../../../helpers/choice.js'
import { sampled } from './sampled.js'
import { testHonestChanges, testTricks } from './trick-runs.js'
import { programTricks } from './tricks/programs.js'
import { repositoryTricks } from './tricks/repositories.js'
import { honestScriptData, scriptDataTricks } from './tricks/script-data.js'

testTricks(
  `no trick against a check without a test runner succeeds, except for those in open.ts (${choice})`,
  sampled([...programTricks, ...repositoryTricks, ...scriptDataTricks]),
)

testHonestChanges('work beside what scripts of the check read is achieved', honestScriptData)
