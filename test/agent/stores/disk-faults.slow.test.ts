import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Children, noSmallDisk, SMALL_DISK } from '../../helpers/kill.js'

const children = new Children<typeof import('./children.js')>(
  new URL('children.ts', import.meta.url),
)
const skip = noSmallDisk()
const mount = '/mnt'

test('appends on a full file system fail with a remedy, and succeed once there is space',
  { skip },
  async () => {
    const { lines, stderr } = await children.run('fillDisk', { mount }, { under: SMALL_DISK })
    assert.equal(stderr, '')
    assert.match(
      lines.join('\n'), /^refused: cannot write to .*: the disk is full; free some space$/,
    )
  })

test('a directory that becomes read-only refuses what it must, and recovers',
  { skip },
  async () => void (await children.run('appendWhileReadOnly', { mount }, { under: SMALL_DISK })))
