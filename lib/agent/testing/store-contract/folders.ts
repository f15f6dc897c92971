/** Folders of other tenants. @module */
import assert from 'node:assert/strict'
import type { RunStore } from '../../store.js'
import { add, type Suite } from './suite.js'

const FOLDERS: readonly string[] = [
  '/', '/srv', '/srv/a', '/srv/a/b', '/srv/a/b/c', '/srv/ab', '/srv/a_b', '/other',
]

export function testFolders({ test }: Suite): void {
  const answers = async (store: RunStore, tenant: string | null): Promise<string[]> => {
    const foreign: string[] = []
    for (const folder of FOLDERS) {
      if ((await store.hasForeignRun?.(folder, tenant)) === true) foreign.push(folder)
    }
    return foreign
  }

  test('runs of other tenants are found by their folders, nested ones included', async (store) => {
    if (store.hasForeignRun === undefined) return
    assert.deepEqual(await answers(store, 'me'), [])
    await add(store, 'mine', { tenant: 'me', cwd: '/srv/a' })
    await add(store, 'mine too', { tenant: 'me', cwd: '/other' })
    assert.deepEqual(await answers(store, 'me'), [])
    const overlapping = ['/', '/srv', '/srv/a', '/srv/a/b', '/srv/a/b/c']
    assert.deepEqual(await answers(store, 'you'), [...overlapping, '/other'])
    assert.deepEqual(await answers(store, null), [...overlapping, '/other'])
    await add(store, 'nobody', { tenant: null, cwd: '/srv/a/b', status: 'pending' })
    assert.deepEqual(await answers(store, 'me'), overlapping)
    await store.delete('mine')
    await store.delete('mine too')
    assert.deepEqual(await answers(store, null), [])
    assert.deepEqual(await answers(store, 'me'), overlapping)
  })
}
