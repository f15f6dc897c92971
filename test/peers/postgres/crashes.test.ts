/** The tests of crashes and hand-over that every store passes, over PostgreSQL. */
import { describe } from 'node:test'
import { testHandOver } from '../../agent/crash/hand-over.js'
import { testKills } from '../../agent/crash/kills.js'
import { testMatrix } from '../../agent/crash/matrix.js'
import { testTreeHandOver } from '../../agent/crash/tree-hand-over.js'
import { testTrees } from '../../agent/crash/trees.js'
import { postgresStorage } from './crash-storage.js'
import { noPostgres } from './postgres.js'

describe('crashes over PostgreSQL', { skip: noPostgres }, () => {
  testMatrix(postgresStorage)
  testKills(postgresStorage)
  testHandOver(postgresStorage)
  testTrees(postgresStorage)
  testTreeHandOver(postgresStorage)
})
