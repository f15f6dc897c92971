// Opening a data directory with many runs, and listing them.
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { agent, folder, sampleRun } from './folder.mjs'

const TEXT = 'x'.repeat(180)
/** The index file's name on disk. */
const INDEX_FILE = 'checkpoint'

/** Fills a directory with runs whose records are interleaved in the journal. */
async function fill({ runs, records }) {
  const directory = folder()
  const store = new agent.FileStore({ directory })
  await store.open()
  for (let from = 0; from < runs; from += 1_000) {
    const logs = Array.from({ length: Math.min(1_000, runs - from) }, (_, i) => {
      const id = `0190f3a2-7c4e-7000-8000-${String(from + i).padStart(12, '0')}`
      return sampleRun(id, {
        createdAt: 1_700_000_000 + from + i,
        records,
        text: TEXT,
        key: id,
        ownerId: 'me',
      })
    })
    for (let at = 0; at < records; at += 5) {
      await Promise.all(logs.map((log) => store.append(log[0].run_id, log.slice(at, at + 5))))
    }
  }
  await store.close()
  return directory
}

/** Milliseconds until a store of `runs` runs is open, with its index file or without. */
export async function reopen({ runs, records, indexFile }) {
  const directory = await fill({ runs, records })
  return {
    async measure() {
      if (!indexFile) rmSync(join(directory, INDEX_FILE), { force: true })
      const store = new agent.FileStore({ directory })
      const started = performance.now()
      await store.open()
      const open = performance.now() - started
      const { heads } = await store.list({ limit: 50 })
      if (heads.length !== 50) throw new Error('runs are missing')
      await store.compact() // writes an index file for the next turn
      await store.close()
      return { open }
    },
  }
}

/** The floor: reads the same files and does nothing with them. */
export async function readFiles({ runs, records }) {
  const directory = await fill({ runs, records })
  return {
    measure() {
      const started = performance.now()
      for (const name of readdirSync(directory)) {
        if (name !== INDEX_FILE) readFileSync(join(directory, name))
      }
      return { open: performance.now() - started }
    },
  }
}

/** Milliseconds of a page of 50 of 100 000 runs. */
export async function list({ where }) {
  const store = new agent.MemoryStore({ retain: {} })
  await store.open()
  for (let i = 0; i < 100_000; i++) {
    const id = `run-${String(i).padStart(6, '0')}`
    await store.append(id, sampleRun(id, { createdAt: 1_700_000_000 + i, cwd: `/work/${i % 300}` }))
  }
  const { next } = await store.list({ limit: 50_000 })
  const query = {
    first: {}, middle: { cursor: next }, status: { status: ['achieved'] }, goal: { goal: 'none' },
    folder: { cwd: '/none' }, folders: { sort: 'cwd' },
  }[where]
  return {
    async measure() {
      const started = performance.now()
      for (let i = 0; i < 10; i++) await store.list({ limit: 50, ...query })
      return { page: (performance.now() - started) / 10 }
    },
  }
}
