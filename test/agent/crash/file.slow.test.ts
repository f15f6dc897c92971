import { testHandOver } from './hand-over.js'
import { testKills } from './kills.js'
import { testMatrix } from './matrix.js'
import { fileStorage } from './storage.js'
import { testTreeHandOver } from './tree-hand-over.js'
import { testTrees } from './trees.js'

testMatrix(fileStorage)
testKills(fileStorage)
testHandOver(fileStorage)
testTrees(fileStorage)
testTreeHandOver(fileStorage)
