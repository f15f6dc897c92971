import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../helpers/random.js'
import { SimulatedDisk, SimulatedProcess } from './simulated-disk.js'

/** A process on a new disk without faults, and a file in a directory that is durable. */
function place(): { readonly disk: SimulatedDisk; readonly process: SimulatedProcess } {
  const disk = new SimulatedDisk('/d')
  return { disk, process: new SimulatedProcess(disk, new Random(1), () => null) }
}

/** What a file holds after a loss of power, for each of many seeds; null when it is gone. */
function outcomes(disk: SimulatedDisk, path: string): Set<string | null> {
  const found = new Set<string | null>()
  for (let seed = 1; seed <= 300; seed++) {
    const copy = disk.clone('/d')
    copy.losePower(new Random(seed * 7919))
    found.add(copy.names.get(path)?.content.toString() ?? null)
  }
  return found
}

test('the simulated disk keeps what was synced, and loses any part of the rest', async () => {
  const { disk, process } = place()
  const fd = process.open('/d/a', 'wx')
  process.writeNow(fd, Buffer.from('one'), 0)
  assert.ok(outcomes(disk, '/d/a').has(null), 'a name that was not synced may be lost')
  process.syncDirectory('/d')
  const unsynced = outcomes(disk, '/d/a')
  assert.ok(!unsynced.has(null))
  for (const content of ['', 'one', '\0\0\0']) assert.ok(unsynced.has(content), content)
  await process.sync(fd)
  assert.deepEqual([...outcomes(disk, '/d/a')], ['one'])
  process.writeNow(fd, Buffer.alloc(1_024, 'x'), 3)
  const parts = outcomes(disk, '/d/a')
  assert.ok(parts.has('one'))
  assert.ok([...parts].some((part) => /^one\0+x+$/.test(part ?? '')), 'only the later block')
  assert.ok([...parts].some((part) => /^onex+\0+$/.test(part ?? '')), 'only the earlier block')
})

test('names on the simulated disk change as a whole, and durably only after a sync', () => {
  const { disk, process } = place()
  process.close(process.open('/d/a', 'wx'))
  process.syncDirectory('/d')
  process.rename('/d/a', '/d/b')
  assert.deepEqual(process.list('/d'), ['b'])
  const names = new Set<string>()
  for (let seed = 1; seed <= 100; seed++) {
    const copy = disk.clone('/d')
    copy.losePower(new Random(seed * 7919))
    names.add(copy.list('/d').join())
  }
  assert.deepEqual([...names].sort(), ['a', 'b'])
  process.syncDirectory('/d')
  process.remove('/d/b')
  assert.deepEqual(outcomes(disk, '/d/b'), new Set(['', null]))
})

test('a sync of the simulated disk that fails drops what it had to write', async () => {
  const disk = new SimulatedDisk('/d')
  let code: string | null = 'EIO'
  const process = new SimulatedProcess(disk, new Random(3), ({ kind }) =>
    kind === 'sync' && code !== null ? { kind: 'error', code, partly: false } : null,
  )
  const fd = process.open('/d/a', 'wx')
  process.syncDirectory('/d')
  process.writeNow(fd, Buffer.from('one'), 0)
  await assert.rejects(process.sync(fd), { code: 'EIO' })
  code = null
  await process.sync(fd)
  assert.equal(process.readNow(fd, 3, 0).toString(), 'one')
  const [after] = outcomes(disk, '/d/a')
  assert.equal(outcomes(disk, '/d/a').size, 1)
  disk.names.get('/d/a')?.evict()
  assert.equal(process.readNow(fd, 3, 0).toString(), after)
})

test('a dead process changes nothing, and its files are closed', async () => {
  const { disk, process } = place()
  const fd = process.open('/d/a', 'wx')
  const written = process.write(fd, Buffer.from('one'), 0)
  process.kill()
  await assert.rejects(written, { code: 'EDEAD' })
  assert.throws(() => process.writeNow(fd, Buffer.from('two'), 0), { code: 'EDEAD' })
  assert.equal(disk.names.get('/d/a')?.content.length, 0)
  assert.deepEqual(process.openFiles, [])
})
