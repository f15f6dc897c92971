/** What lies in place of a file of objects, and is none. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { FileStore } from 'runwright/agent'
import { scratch } from '../../helpers/engine.js'

const HASH = 'ab'.repeat(32)
const makers: readonly (readonly [string, (path: string) => void])[] = [
  ['pipe', (path) => void execFileSync('mkfifo', [path])],
  ['folder', (path) => mkdirSync(path)],
]

for (const [kind, make] of makers) {
  test(`a ${kind} in place of an object, or of a pack, is damage`, async (t) => {
    const directory = scratch(t)
    const object = join(directory, 'objects/ab', HASH.slice(2))
    const pack = join(directory, 'objects/x-1.pack')
    mkdirSync(dirname(object), { recursive: true })
    for (const path of [object, pack]) make(path)
    const store = new FileStore({ directory })
    await store.open()
    t.after(() => store.close())
    await assert.rejects(store.objects.get(HASH), { code: 'ERR_AGENT_STORE_CORRUPT' })
    const named = store.damage().files.join('\n')
    assert.ok(named.includes(object) && named.includes(pack), named)
  })
}
