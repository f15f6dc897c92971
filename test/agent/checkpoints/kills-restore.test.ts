import { test } from 'node:test'
import { killRestores } from './killed-operations.js'

test('a restore after the end that is killed at any write is finished by the next start', (t) =>
  killRestores(t, {}))
