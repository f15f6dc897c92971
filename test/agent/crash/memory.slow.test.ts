import { testHandOver } from './hand-over.js'
import { testMatrix } from './matrix.js'
import { memoryStorage } from './storage.js'
import { testTreeHandOver } from './tree-hand-over.js'
import { testTrees } from './trees.js'

testMatrix(memoryStorage)
testHandOver(memoryStorage)
testTrees(memoryStorage)
testTreeHandOver(memoryStorage)
