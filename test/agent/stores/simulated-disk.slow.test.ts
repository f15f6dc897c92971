import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { Children } from '../../helpers/kill.js'
import { playCase } from './disk-case.js'
import { playLoad } from './disk-load.js'

/** The seeds are 1 to this; `.ci/run` sets it to what it has time for. */
const CASES = Number(process.env['RUNWRIGHT_DISK_CASES'] ?? 80)
/** Plays one case and prints its story. */
const SEED = process.env['RUNWRIGHT_DISK_SEED']

const children = new Children<typeof import('./children.js')>(
  new URL('children.ts', import.meta.url),
)

test('a store keeps its promises in random cases of faulty disks and processes', async (t) => {
  if (SEED !== undefined) {
    await playCase(Number(SEED), (line) => console.log(line))
    return playLoad(Number(SEED))
  }
  t.diagnostic(`${CASES} cases`)
  const step = Math.min(availableParallelism(), Math.ceil(CASES / 250))
  const players = Array.from({ length: step }, (_, i) =>
    children.start(t, 'playCases', { from: i + 1, to: CASES, step }),
  )
  const endings = await Promise.all(players.map(({ ended }) => ended))
  assert.deepEqual(endings.flatMap(({ lines }) => lines), [])
})
