import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileStore, RunEngine } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { ManualClock } from 'runwright/agent/testing'
import { WebhookCursor } from '../../../lib/server/webhooks/cursor.js'
import { Webhooks } from '../../../lib/server/webhooks/webhooks.js'
import type { Life } from '../../helpers/mortal-child.js'
import { SECRET } from './receiver.js'

/** Delivers the events of one run until it is killed. */
export async function deliver(
  { folder, url }: { readonly folder: string; readonly url: string },
): Promise<void> {
  const store = new FileStore({ directory: `${folder}/runs` })
  const engine = await RunEngine.open({
    store, roots: [folder], sealedChecks: 'off',
    providers: [repairModel()], defaultModel: 'builtin:repair',
  })
  await Webhooks.open(engine, {
    directory: `${folder}/webhooks`,
    endpoints: [{ url, secret: SECRET, allowPrivate: true }],
    onFailure: () => {},
  })
  const { runs } = await engine.list()
  // A goal that is met at once: the run ends by itself.
  if (runs.length === 0) await engine.create({ goal: 'shell: true' })
}

/** Saves the progress of deliveries on a disk that is full for some time. */
export async function saveOnFullDisk(
  { folder }: { readonly folder: string },
  life: Life,
): Promise<void> {
  const path = join(folder, 'progress.json')
  const filler = join(folder, 'filler')
  const clock = new ManualClock()
  let warnings = 0
  process.on('warning', () => (warnings += 1))

  const reopen = (): Promise<WebhookCursor> => WebhookCursor.open(path, new ManualClock())

  /** Takes every byte that is left. */
  function fill(): void {
    for (let size = 1 << 20; size >= 1; size >>= 1) {
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: 'a' })
      } catch {
        // Full at this size.
      }
    }
  }

  const cursor = await WebhookCursor.open(path, clock)
  cursor.add('saved', 1)
  cursor.update('saved', { first: 7, attempts: 1, next: 8 })
  await cursor.save()
  fill()
  cursor.add('unsaved', 2)
  // More than the last block of the file has room for.
  for (let i = 0; i < 100; i++) cursor.add(`padding${i}`, 2)
  await cursor.save()
  for (let i = 0; i < 100; i++) cursor.finish(`padding${i}`)
  clock.advance(5_000)
  await cursor.save()
  await new Promise((resolve) => setImmediate(resolve))
  const heard = warnings
  const { first, attempts, next } = (await reopen()).runs.get('saved')!
  rmSync(filler)
  clock.advance(5_000)
  await cursor.save()
  const later = [...(await reopen()).runs.keys()]
  life.say(JSON.stringify({ whileFull: { first, attempts, next }, later, warnings: heard }))
}
