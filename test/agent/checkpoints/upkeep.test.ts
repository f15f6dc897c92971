/** Which copies of runs are kept: a pure decision by the head of each run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, StoreError, type RunHead } from 'runwright/agent'
import { Upkeep } from '../../../lib/agent/checkpoints/upkeep.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

type Details = Partial<RunHead['details']>

const HEADS: Readonly<Record<string, Details | StoreError>> = {
  live: { status: 'running' },
  failed: { status: 'failed' },
  pending: { status: 'achieved', changes: 'pending' },
  applied: { status: 'achieved', changes: 'applied' },
  discarded: { status: 'achieved', changes: 'discarded' },
  attempting: { role: 'attempt', status: 'awaiting_human' },
  attempt: { role: 'attempt', status: 'achieved', changes: 'pending' },
  delegate: { role: 'delegate', status: 'failed' },
  damaged: new StoreError('ERR_AGENT_STORE_CORRUPT', 'it is damaged'),
  newer: new StoreError('ERR_AGENT_STORE_VERSION', 'a newer version wrote it'),
}

test('copies are kept of runs that may need them, and one unreadable run hinders none', async () => {
  const store = new MemoryStore()
  await store.open()
  await store.append('sample', sampleRun('sample'))
  const head = (await store.head('sample')) as RunHead
  store.head = (runId) => {
    const known = HEADS[runId]
    if (known instanceof StoreError) return Promise.reject(known)
    return Promise.resolve(known === undefined ? null : {
      ...head, details: { ...head.details, run_id: runId, ...known },
    })
  }
  const names = [...Object.keys(HEADS), 'gone']
  const decide = async (isWanted: (runId: string) => Promise<boolean>): Promise<string[]> => {
    const kept: string[] = []
    for (const name of names) if (await isWanted(name)) kept.push(name)
    return kept
  }
  const kept = await new Promise<readonly string[][]>((resolve, reject) => {
    const found: string[][] = []
    const sweep = async (isWanted: (runId: string) => Promise<boolean>): Promise<void> => {
      found.push(await decide(isWanted).catch((error: unknown) => (reject(error), [])))
      if (found.length === 2) resolve(found)
    }
    new Upkeep({ store, use: null, isolation: { sweep }, sealed: { sweep } }).start()
  })
  assert.deepEqual(kept, [
    ['live', 'failed', 'pending', 'attempting', 'damaged', 'newer'],
    ['live', 'attempting', 'damaged', 'newer'],
  ])
})
