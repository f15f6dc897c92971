import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { Children, KILLS, type Mortal } from '../../helpers/kill.js'
import { Random } from '../../helpers/random.js'
import { Acknowledged } from './kill-plan.js'
import { INDEX_FILE } from './store-files.js'

const children = new Children<typeof import('./children.js')>(
  new URL('children.ts', import.meta.url),
)
/** More than elsewhere, since each is quick. */
const COUNT = 2 * KILLS

test('after many kills every acknowledged append is stored once and as a whole', async (t) => {
  t.diagnostic(`${COUNT} kills`)
  const directory = join(scratch(t), 'data')
  const random = new Random(COUNT)
  const acknowledged = new Acknowledged()
  // Starting takes the most time: the next child starts while the store of the last is checked.
  const start = (generation: number): Mortal => {
    const plan = { directory, workers: random.integer(1, 24), generation }
    return children.start(t, 'append', plan, { waits: true })
  }
  let next = start(0)
  for (let kill = 0; kill < COUNT; kill++) {
    const child = next
    next = start(kill + 1)
    const lines = 1 + Math.floor(random.next() ** 2 * 300)
    child.send('go')
    let printed = 0
    for await (const line of child.lines()) {
      acknowledged.hear(line)
      printed += 1
      if (printed === lines) child.kill()
    }
    assert.equal((await child.ended).signal, 'SIGKILL')
    if (kill % 5 === 4) rmSync(join(directory, INDEX_FILE), { force: true })
    await acknowledged.assertIn(directory, `kill ${kill}`)
  }
  assert.ok(acknowledged.deletions > 0, 'no deletion was tested')
})

/** File operations that rotation, index files and reclaiming consist of; see deadly-disk.ts. */
const OPERATIONS = ['create', 'sync', 'sync directory', 'write', 'rename', 'remove', 'tail']
/** The operation at which the process dies: of its kind, the n-th. */
const COUNTS = [1, 2, 3, 5, 8, 13]

for (const operation of OPERATIONS) {
  test(`a process killed around any ${operation} loses nothing and repeats nothing`, async (t) => {
    const folder = scratch(t, 'in memory')
    for (const moment of ['before', 'after']) {
      const dieOn = `${moment} ${operation}`
      const directory = join(folder, dieOn)
      const acknowledged = new Acknowledged()
      // Each process continues where the one before it was killed.
      for (const dieAt of COUNTS) {
        const title = `${dieOn} ${dieAt}`
        const plan = { directory, name: title.replaceAll(' ', '-') }
        const { signal, lines } = await children.run('appendAndCompact', plan, { dieAt, dieOn })
        assert.equal(signal, 'SIGKILL', title)
        for (const line of lines) acknowledged.hear(line)
        await acknowledged.assertIn(directory, title)
      }
    }
  })
}

const OBJECT_OPERATIONS = [
  'create', 'write', 'sync', 'rename', 'sync folder', 'mark', 'remove a pack',
]

test('a process that is killed around any write of objects loses none of them', async (t) => {
  const folder = scratch(t, 'in memory')
  for (const operation of OBJECT_OPERATIONS) {
    for (const moment of ['before', 'after']) {
      const dieOn = `${moment} ${operation}`
      const directory = join(folder, dieOn)
      const said: string[] = []
      // Each process checks what those before it have said, and goes on.
      for (const dieAt of [1, 4, 30]) {
        const { signal, lines } = await children.run(
          'storeObjects', { directory, said }, { dieAt, dieOn },
        )
        assert.equal(signal, 'SIGKILL', `${dieOn} ${dieAt}`)
        said.push(...lines)
      }
    }
  }
})
