/**
 * Appends of one record of about 300 bytes by several writers, each waiting for its own append. The
 * floors write the same bytes with nothing around them: no checksum, no index, no head of a run.
 */
import { closeSync, fdatasync, fdatasyncSync, openSync, write, writeSync } from 'node:fs'
import { join } from 'node:path'
import { agent, folder, sampleRun } from './folder.mjs'

const TEXT = 'x'.repeat(180)

/** A record that goes on from any run. */
const logRecord = (runId, seq) => ({
  v: 1,
  run_id: runId,
  seq,
  iteration: 1,
  ts: 1_700_000_000,
  kind: 'log',
  payload: { level: 'info', message: TEXT },
})
const line = (seq) =>
  Buffer.from(`${JSON.stringify({ run: 'run-12', records: [logRecord('run-12', seq)] })}\n`)

/** Lets `writers` append until the time is over; microseconds of an append, of CPU too. */
async function race(append, writers, ms) {
  const cpu = process.cpuUsage()
  const started = performance.now()
  let count = 0
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      while (performance.now() - started < ms) {
        await append(writer)
        count += 1
      }
    }),
  )
  const took = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  return { append: (took / count) * 1000, cpu: (user + system) / count }
}

/** One sync for each record. */
export async function syncEach() {
  const fd = openSync(join(folder(), 'floor'), 'w')
  let seq = 0
  const append = () => {
    writeSync(fd, line(seq++))
    fdatasyncSync(fd)
  }
  return { measure: ({ ms }) => race(append, 1, ms), close: () => closeSync(fd) }
}

/** Group commit and nothing else: writers wait, one write and one sync for all who do. */
export async function groupCommit({ writers }) {
  const fd = openSync(join(folder(), 'floor'), 'w')
  let [waiting, busy, seq] = [[], false, 0]
  const flush = () => {
    const group = waiting
    if (group.length === 0) {
      busy = false
      return
    }
    waiting = []
    write(fd, Buffer.concat(group.map(({ data }) => data)), (error) => {
      if (error !== null) throw error
      fdatasync(fd, (failure) => {
        if (failure !== null) throw failure
        for (const { done } of group) done()
        setImmediate(flush)
      })
    })
  }
  const append = () =>
    new Promise((done) => {
      waiting.push({ data: line(seq++), done })
      if (busy) return
      busy = true
      setImmediate(flush)
    })
  return { measure: ({ ms }) => race(append, writers, ms), close: () => closeSync(fd) }
}

/** A store of ours: `memory`, `none` (a file without sync) or `group`. */
export async function store({ sync, writers }) {
  const { FileStore, MemoryStore } = agent
  const open =
    sync === 'memory'
      ? new MemoryStore({ retain: {} })
      : new FileStore({ directory: folder(), sync })
  await open.open()
  let turn = 0
  return {
    async measure({ ms }) {
      // New runs for each turn, and none of the turns before: their logs would fill the memory.
      turn += 1
      const runs = Array.from({ length: writers }, (_, i) => ({ id: `run-${turn}-${i}`, seq: 1 }))
      await Promise.all(
        runs.map(({ id }) => open.append(id, sampleRun(id, { status: 'pending', records: 1 }))),
      )
      const told = await race(
        (writer) => {
          const run = runs[writer]
          run.seq += 1
          return open.append(run.id, [logRecord(run.id, run.seq)])
        },
        writers,
        ms,
      )
      for (const { id } of runs) await open.delete(id)
      return told
    },
    close: () => open.close(),
  }
}

/** One append to a run that has `events` already. */
export async function behind({ sync, events }) {
  const { FileStore } = agent
  const open = new FileStore({ directory: folder(), sync })
  await open.open()
  let turn = 0
  return {
    async measure() {
      const id = `run-${turn++}`
      await open.append(id, sampleRun(id, { status: 'running', records: events }))
      const started = performance.now()
      for (let i = 1; i <= 500; i++) await open.append(id, [logRecord(id, events + i)])
      return { append: ((performance.now() - started) / 500) * 1000 }
    },
    close: () => open.close(),
  }
}
