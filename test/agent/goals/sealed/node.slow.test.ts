import { choice } from '../../../helpers/choice.js'
import { sampled } from './sampled.js'
import { testTricks } from './trick-runs.js'
import { nodeFileTricks } from './tricks/node-files.js'
import { nodeMemoryTricks } from './tricks/node-memory.js'

testTricks(
  `no trick with files or memory against node:test succeeds, except for those in open.ts (${choice})`,
  sampled([...nodeFileTricks, ...nodeMemoryTricks]),
)
