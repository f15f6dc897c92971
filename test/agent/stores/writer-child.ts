/**
 * Opens a store and obeys lines on standard input: `append run`, `compact`, `close`. It prints
 * `open`, then `+ run` for what was acknowledged, and `! run code` for what was refused. See
 * two-writers.test.ts, which bundles it: only relative imports work here.
 */
import { createInterface } from 'node:readline'
import type { StoreError } from '../../../lib/agent/errors.js'
import { FileStore } from '../../../lib/agent/stores/file/file-store.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

const store = new FileStore({ directory: process.argv[2] ?? '', segmentBytes: 4 << 10 })
try {
  await store.open()
  console.log('open')
} catch (error) {
  console.log(`! open ${(error as StoreError).code}`)
  process.exit(1)
}

for await (const line of createInterface({ input: process.stdin })) {
  const [command = '', runId = command] = line.split(' ')
  try {
    if (command === 'append') await store.append(runId, sampleRun(runId, { records: 6 }))
    if (command === 'compact') await store.compact()
    if (command === 'check') await store.check()
    if (command === 'close') break
    console.log(`+ ${runId}`)
  } catch (error) {
    console.log(`! ${runId} ${(error as StoreError).code}`)
  }
}
await store.close()
