import { test } from 'node:test'
import { killRestores } from './killed-operations.js'

test('a restore at a gate that is killed at any write is finished by the next start', (t) =>
  killRestores(t, { goal: 'shell: false', hitl_enabled: true }))
