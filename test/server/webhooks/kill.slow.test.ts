import assert from 'node:assert/strict'
import { readdirSync, readFileSync, watch } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { Children, noSmallDisk, SMALL_DISK } from '../../helpers/kill.js'
import { openReceiver } from './receiver.js'

const children = new Children<typeof import('./kill-children.js')>(
  new URL('kill-children.ts', import.meta.url),
)

/** How long the receiver asks to wait, in seconds: longer than a start of the child takes. */
const ASKED_S = 2

test('a process that is killed while it waits keeps to the schedule when it is back', async (t) => {
  const folder = scratch(t)
  const times: number[] = []
  const { url, received, until } = await openReceiver(t, (_, response) => {
    times.push(Date.now())
    if (times.length > 1) response.writeHead(204).end()
    else response.writeHead(503, { 'retry-after': String(ASKED_S) }).end()
  })
  const first = children.start(t, 'deliver', { folder, url })
  await until(1)
  const directory = join(folder, 'webhooks')
  const isSaved = (): boolean =>
    readdirSync(directory).some((name) =>
      readFileSync(join(directory, name), 'utf8').includes('"attempts":1'),
    )
  await whenChanged(directory, isSaved)
  first.kill()
  await first.ended
  const second = children.start(t, 'deliver', { folder, url })
  await until(2)
  second.kill()
  await second.ended
  assert.equal(received[1]!.id, received[0]!.id)
  // The wait is counted from when the response was read, so it is never shorter.
  assert.ok(times[1]! - times[0]! >= ASKED_S * 1_000 - 1, `after ${times[1]! - times[0]!} ms`)
})

/** Resolves once `condition` holds, which a change in the directory brings about. */
function whenChanged(directory: string, condition: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!condition()) return
      watcher.close()
      resolve()
    }
    const watcher = watch(directory, look)
    look()
  })
}

test('on a full disk nothing that was saved is lost', { skip: noSmallDisk() }, async () => {
  const place = { folder: '/mnt' }
  const { lines } = await children.run('saveOnFullDisk', place, { under: SMALL_DISK })
  assert.deepEqual(JSON.parse(lines[0]!), {
    whileFull: { first: 7, attempts: 1, next: 8 },
    later: ['saved', 'unsaved'],
    warnings: 1,
  })
})
