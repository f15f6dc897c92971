import { testThatTheyFool } from './trick-runs.js'
import { nodeFileTricks } from './tricks/node-files.js'
import { nodeMemoryTricks } from './tricks/node-memory.js'
import { nodeSurroundingTricks } from './tricks/node-surroundings.js'

testThatTheyFool('tricks against node:test work where only the exit code counts', [
  ...nodeFileTricks, ...nodeMemoryTricks, ...nodeSurroundingTricks,
])
