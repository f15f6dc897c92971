import assert from 'node:assert/strict'
import {
  cpSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileStore, RunEngine, type ModelProvider } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch, testProvider } from '../../helpers/engine.js'
import { INDEX_FILE, copyStore, journalFiles, openStore } from './store-files.js'

interface Acknowledged {
  readonly status: string
  readonly lastSeq: number
}

const SMALL = { segmentBytes: 4 << 10, onWarning: () => undefined }

/** Forty runs: ended ones, some that go on, some that have only begun; some deleted. */
async function fill(
  store: FileStore,
  truth: Map<string, Acknowledged>,
  from: number,
): Promise<void> {
  for (let i = from; i < from + 20; i++) {
    const runId = `run-${i}`
    const status = i % 5 === 0 ? 'running' : 'achieved'
    const records = sampleRun(runId, { records: 12, status })
    const length = i % 7 === 3 ? 1 : records.length
    for (let at = 0; at < length; at += 4) {
      await store.append(runId, records.slice(at, Math.min(length, at + 4)))
    }
    const head = await store.head(runId)
    truth.set(runId, { status: head?.details.status ?? '', lastSeq: length })
    if (i % 9 !== 8) continue
    await store.delete(`run-${i - 1}`)
    truth.delete(`run-${i - 1}`)
  }
}

/** Ways to lose a file, or a part of one. */
const LOSSES: Readonly<Record<string, (path: string) => void>> = {
  removed: (path) => rmSync(path),
  emptied: (path) => truncateSync(path, 0),
  'cut in half': (path) => truncateSync(path, statSync(path).size >> 1),
  'cut by its last line': (path) => {
    const text = readFileSync(path)
    truncateSync(path, text.lastIndexOf(10, text.length - 2) + 1)
  },
}

/** Runs that are neither what was acknowledged nor quarantined. */
async function differences(
  store: FileStore,
  truth: ReadonlyMap<string, Acknowledged>,
): Promise<string[]> {
  const quarantined = new Set(store.quarantined.map(({ runId }) => runId))
  const found: string[] = []
  for (const [runId, { status, lastSeq }] of truth) {
    if (quarantined.has(runId)) continue
    const details = (await store.head(runId))?.details
    const isSame = details?.status === status && details.last_seq === lastSeq
    if (isSame && (await store.read(runId, 0, 100)).length === lastSeq) continue
    found.push(`${runId} ${details?.status ?? 'missing'}`)
  }
  return found
}

for (const ending of ['closed', 'killed'] as const) {
  test(`no file of a ${ending} store can be lost in silence, nor be lost twice`, async (t) => {
    const folder = scratch(t, 'in memory')
    const directory = join(folder, 'data')
    const truth = new Map<string, Acknowledged>()
    let store = await openStore(directory, SMALL)
    await fill(store, truth, 0)
    await store.compact()
    await store.close()
    store = await openStore(directory, SMALL)
    await fill(store, truth, 20)
    if (ending === 'closed') await store.close()
    const whole = copyStore(directory, join(folder, 'whole'))
    if (ending === 'killed') await store.close()
    for (const name of readdirSync(whole)) {
      for (const [loss, lose] of Object.entries(LOSSES)) {
        const damaged = join(folder, 'damaged')
        cpSync(whole, damaged, { recursive: true })
        lose(join(damaged, name))
        const title = `${name} ${loss}`
        const expectsDamage = name.startsWith('journal')
        for (const opening of ['first', 'second']) {
          const warnings: string[] = []
          const onWarning = ({ message }: Error): void => void warnings.push(message)
          const again = await openStore(damaged, { ...SMALL, onWarning })
          const { runs, files } = again.damage()
          const silent = await differences(again, truth)
          // A run that lies wholly in lost bytes is unknown; then the loss itself is reported.
          const isKnown = silent.every((run) => run.endsWith('missing'))
          assert.ok(isKnown, `${title}, ${opening}: ${silent.join()}`)
          assert.ok(runs.length + files.length <= warnings.length, title)
          if (!expectsDamage) assert.equal(runs.length, 0, title)
          else if (opening === 'first') assert.ok(files.length > 0, title)
          const { heads } = await again.list({ limit: 1_000 })
          const listed = heads.filter(({ problem }) => problem !== undefined)
          assert.equal(listed.length, runs.length, title)
          await again.append(`new-${opening}`, sampleRun(`new-${opening}`))
          await again.close()
        }
        // Without its index file, too, no run comes back in an earlier state.
        rmSync(join(damaged, INDEX_FILE), { force: true })
        const last = await openStore(damaged, SMALL)
        const silent = await differences(last, truth)
        assert.deepEqual(silent.filter((run) => !run.endsWith('missing')), [], title)
        await last.close()
        rmSync(damaged, { recursive: true })
      }
    }
  })
}

test('a run whose end is missing is neither executed again nor hidden', async (t) => {
  const folder = scratch(t)
  const directory = join(scratch(t), 'data')
  const answers = (): ModelProvider =>
    testProvider((_, call) => {
      if (call > 0) return { text: 'done' }
      return { calls: [{ tool: 'bash', args: { command: 'echo ran >> marker' } }] }
    })
  const open = async (warnings: string[]): Promise<RunEngine> =>
    RunEngine.open({
      store: new FileStore({
        directory,
        segmentBytes: 1 << 10,
        onWarning: ({ message }) => void warnings.push(message),
      }),
      roots: [folder],
      providers: [answers()],
    })
  const first = await open([])
  const request = { goal: 'shell: test -f marker', cwd: folder, model_name: 'test:m' }
  const { details } = await first.create(request)
  const { run_id } = details
  for await (const _ of await first.subscribe(run_id)) void _
  assert.equal((await first.get(run_id)).status, 'achieved')
  await first.close()
  const files = journalFiles(directory)
  assert.ok(files.length > 2, `${files.length} segments`)
  for (const lost of files.slice(1)) {
    cpSync(directory, `${directory}-whole`, { recursive: true })
    rmSync(lost)
    const warnings: string[] = []
    const engine = await open(warnings)
    await assert.rejects(engine.get(run_id), { code: 'ERR_AGENT_STORE_CORRUPT' })
    assert.deepEqual(engine.damage().runs.map(({ runId }) => runId), [run_id])
    assert.match(warnings.join('\n'), /segment \d+ of the journal is missing/)
    assert.match(warnings.join('\n'), new RegExp(`run ${run_id} is quarantined`))
    assert.equal(engine.capacity().queued, 0)
    await engine.close()
    assert.equal(readFileSync(join(folder, 'marker'), 'utf8'), 'ran\n', lost)
    rmSync(directory, { recursive: true })
    renameSync(`${directory}-whole`, directory)
  }
})
