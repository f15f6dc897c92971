import type { FileStore, RunQuery } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

let others = 0

/** Children go before their root: two rounds through the journal. */
export async function settled(store: FileStore): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const other = `other-${(others += 1)}`
    await store.append(other, sampleRun(other, { status: 'pending' }))
    await store.delete(other)
  }
}

export async function addTree(store: FileStore, root: string, createdAt: number): Promise<void> {
  const places = [
    { id: root },
    { id: `${root}1`, parentRunId: root, rootRunId: root },
    { id: `${root}2`, parentRunId: `${root}1`, rootRunId: root, role: 'delegate' as const },
  ]
  for (const { id, ...place } of places)
    await store.append(id, sampleRun(id, { createdAt, ...place }).slice(0, 2))
  for (const { id, ...place } of places.toReversed())
    await store.append(id, sampleRun(id, { createdAt, ...place }).slice(2))
}

export async function idsOf(store: FileStore, query: Partial<RunQuery>): Promise<string> {
  const { heads } = await store.list({ limit: 100, ...query })
  return heads.map(({ details }) => details.run_id).join(' ')
}
