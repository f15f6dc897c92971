import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { Children, noSmallDisk, SMALL_DISK } from '../../helpers/kill.js'

const children = new Children<typeof import('./children.js')>(
  new URL('children.ts', import.meta.url),
)

test('a run that fills the disk waits until there is room, also over a restart',
  { skip: noSmallDisk() },
  async (t) => {
    const place = { mount: '/mnt', root: scratch(t) }
    const { lines } = await children.run('fillDisk', place, { under: SMALL_DISK })
    const [waits = '', ...rest] = lines
    assert.match(waits, /^running, while cannot write to .*: the disk is full; free some space$/)
    assert.deepEqual(rest, ['closed while the disk is full'])
  })
