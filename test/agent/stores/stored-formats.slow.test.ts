import assert from 'node:assert/strict'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { FileStore, isTerminal, RunEngine, type RunHead, type RunRecord } from 'runwright/agent'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { INDEX_FILE, journalFiles, openStore, readAll } from './store-files.js'

const fixtures = fileURLToPath(new URL('../../fixtures/stores/', import.meta.url))
/** The folder of the runs in `v1-live` and `v1-suspended`. */
const CWD = '/srv/projects/demo'

/** What the version that wrote a folder read from it. */
interface Expected {
  readonly quarantined: readonly string[]
  readonly heads: readonly RunHead[]
  readonly logs: Readonly<Record<string, readonly RunRecord[]>>
}

interface Variant {
  readonly name: string
  readonly folder: string
  readonly change?: (directory: string) => void
}

const removeIndex = (directory: string): void => rmSync(join(directory, INDEX_FILE))
const tear = (directory: string): void => {
  const last = journalFiles(directory).at(-1) as string
  appendFileSync(last, '{"crc":"5b1d0e77","run":"run-23","records":[{"v":1,"seq":4,"ki')
}
const variants: readonly Variant[] = [
  { name: 'runs of every status in a process that was killed', folder: 'v1-live' },
  { name: 'a torn tail', folder: 'v1-live', change: tear },
  { name: 'runs of every status after a clean end', folder: 'v1-suspended' },
  { name: 'the same without its index file', folder: 'v1-suspended', change: removeIndex },
  { name: 'rewritten segments, tombstones and an index file', folder: 'v1-segments' },
  { name: 'the same without its index file', folder: 'v1-segments', change: removeIndex },
  { name: 'the same with a torn tail', folder: 'v1-segments', change: tear },
  { name: 'a quarantined run in the index file', folder: 'v1-damaged' },
  { name: 'the same without its index file', folder: 'v1-damaged', change: removeIndex },
]

function expectedOf(folder: string): Expected {
  return JSON.parse(readFileSync(join(fixtures, `${folder}.json`), 'utf8')) as Expected
}

/** A copy of a folder of the fixtures. */
function copied(t: TestContext, { folder, change }: Omit<Variant, 'name'>): string {
  const directory = join(scratch(t), 'data')
  cpSync(join(fixtures, folder), directory, { recursive: true })
  change?.(directory)
  return directory
}

/** Opens a store that is closed after the test at the latest. */
async function opened(t: TestContext, directory: string): Promise<FileStore> {
  const store = await openStore(directory, { segmentBytes: 4096 })
  t.after(() => store.close())
  return store
}

/** Asserts that heads, lists and logs are those of the fixture; later heads may have more fields. */
async function assertReads(store: FileStore, expected: Expected): Promise<void> {
  const { quarantined, heads, logs } = expected
  assert.deepEqual(store.quarantined.map(({ runId }) => runId), quarantined)
  for (const runId of quarantined) {
    await assert.rejects(readAll(store, runId), { code: 'ERR_AGENT_STORE_CORRUPT' })
  }
  const { heads: listed } = await store.list({ limit: 1000 })
  const usable = listed.filter(({ problem }) => problem === undefined)
  assert.deepEqual(usable.map((head, i) => sameFields(head, heads[i])), heads)
  for (const head of heads) {
    const { run_id } = head.details
    assert.deepEqual(sameFields(await store.head(run_id), head), head)
    assert.equal(text(await readAll(store, run_id)), text(logs[run_id] ?? []))
    assert.equal(text(await store.read(run_id, 1, 2)), text(logs[run_id]?.slice(1, 3) ?? []))
    if (head.idempotency === null) continue
    const found = await store.findByKey(head.owner, head.idempotency.key, 0)
    assert.equal(found?.details.run_id, run_id)
  }
}

/** What `value` has in the fields of `like`, and in those of its details and their usage. */
function sameFields(value: RunHead | null, like: RunHead | undefined): unknown {
  if (value === null || like === undefined) return value
  const pick = <T extends object>(from: T, keys: object): Partial<T> =>
    Object.fromEntries(Object.entries(from).filter(([key]) => key in keys)) as Partial<T>
  const { usage, ...details } = value.details
  const same = { ...pick(details, like.details), usage: pick(usage, like.details.usage) }
  return { ...pick(value, like), details: same }
}

function text(records: readonly RunRecord[]): string {
  return records.map((record) => JSON.stringify(record)).join('\n')
}

for (const { name, folder, change } of variants) {
  test(`${folder} of version 0.1.0 is read to the byte: ${name}`, async (t) => {
    const expected = expectedOf(folder)
    const directory = copied(t, { folder, ...(change && { change }) })
    for (let opening = 1; opening <= 2; opening++) {
      const store = await opened(t, directory)
      await assertReads(store, expected)
      await store.close()
    }
  })

  test(`${folder} of version 0.1.0 goes on: ${name}`, async (t) => {
    const expected = expectedOf(folder)
    const directory = copied(t, { folder, ...(change && { change }) })
    const grown = { ...expected.logs }
    let store = await opened(t, directory)
    const added = sampleRun('zz-new', { createdAt: 1_900_000_000, records: 20 })
    await store.append('zz-new', added)
    for (const { details } of expected.heads) {
      if (isTerminal(details.status)) continue
      const log = grown[details.run_id] ?? []
      const last = log.at(-1) as RunRecord
      const note: RunRecord = {
        v: 1,
        run_id: details.run_id,
        seq: last.seq + 1,
        iteration: last.iteration,
        ts: last.ts + 1,
        kind: 'log',
        payload: { level: 'info', message: 'appended by this version' },
      }
      await store.append(details.run_id, [note])
      grown[details.run_id] = [...log, note]
    }
    const [gone] = Object.keys(grown)
    await store.delete(gone as string)
    delete grown[gone as string]
    for (const compacted of [false, true]) {
      if (compacted) await store.compact()
      for (const [runId, log] of Object.entries(grown)) {
        assert.equal(text(await readAll(store, runId)), text(log))
      }
      assert.equal(text(await readAll(store, 'zz-new')), text(added))
      assert.equal(await store.head(gone as string), null)
      await store.close()
      store = await opened(t, directory)
    }
    assert.deepEqual(store.quarantined.map(({ runId }) => runId), expected.quarantined)
  })
}

for (const folder of ['v1-live', 'v1-suspended']) {
  test(`the engine brings the unfinished runs of ${folder} to their ends`, async (t) => {
    const expected = expectedOf(folder)
    const directory = copied(t, { folder })
    const work = scratch(t)
    for (const { details } of expected.heads) {
      mkdirSync(join(work, details.cwd.slice(CWD.length)), { recursive: true })
    }
    const answer = testProvider(({ run }) => {
      if (existsSync(join(run.cwd, 'done'))) return { text: 'It is there.' }
      return { calls: [{ tool: 'write_file', args: { path: 'done', content: 'yes\n' } }] }
    })
    const engine = await RunEngine.open({
      store: relocated(directory, work),
      roots: [work],
      providers: [{ ...answer, id: 'fixture' }],
      defaultModel: 'fixture:m',
    })
    t.after(() => engine.close())
    const unfinished = expected.heads.filter(({ details }) => !isTerminal(details.status))
    assert.equal(unfinished.length, 9)
    for (const { details } of unfinished) await approveToTheEnd(engine, details.run_id)
    await engine.close()

    const store = await opened(t, directory)
    for (const { details } of expected.heads) {
      const records = await readAll(store, details.run_id)
      const before = expected.logs[details.run_id] ?? []
      assert.equal(text(records.slice(0, before.length)), text(before))
      assertInvariants(records)
      const status = isTerminal(details.status) ? details.status : 'achieved'
      assert.equal((await store.head(details.run_id))?.details.status, status)
    }
  })
}

/** A store whose runs are in `work` as far as its user can see: the folder of the log is nowhere. */
function relocated(directory: string, work: string): FileStore {
  const store = new FileStore({ directory })
  const moved = <T>(value: T): T =>
    JSON.parse(JSON.stringify(value).replaceAll(CWD, work)) as T
  const { read, head, list } = store
  store.read = async (...args) => moved(await read.apply(store, args))
  store.head = async (...args) => moved(await head.apply(store, args))
  store.list = async (...args) => moved(await list.apply(store, args))
  return store
}

async function approveToTheEnd(engine: RunEngine, runId: string): Promise<void> {
  let open = (await engine.get(runId)).gate?.gate_id
  if (open !== undefined) await engine.resume(runId, { decision: 'approve', gate_id: open })
  for await (const batch of await engine.subscribe(runId, { after: -1 })) {
    for (const { json } of batch) {
      const { kind, payload } = JSON.parse(json) as RunRecord
      if (kind !== 'human_check_required' || payload.gate_id === open) continue
      open = payload.gate_id
      await engine.resume(runId, { decision: 'approve', gate_id: open })
    }
  }
}

/** A line of the journal with the checksum of its content. */
function withCrc(line: string): string {
  const rest = line.slice('{"crc":"01234567",'.length)
  return `{"crc":"${crc32(rest).toString(16).padStart(8, '0')}",${rest}`
}

/** Changes the lines of a file; each gets a new checksum. */
function editLines(path: string, edit: (line: string) => string): void {
  const lines = readFileSync(path, 'utf8').split('\n')
  const edited = lines.map((line) => {
    const changed = edit(line)
    return changed === line ? line : withCrc(changed)
  })
  writeFileSync(path, edited.join('\n'))
}

const newerHeader = (path: string): void =>
  editLines(path, (line) => line.replace('"journal":1', '"journal":99'))

/** What a crash of the newer version leaves; opening would remove files if it went on. */
function interruptedRewrite(directory: string): void {
  const [first = ''] = journalFiles(directory)
  const next = first.replace(/\.(\d+)\.jsonl$/, '.9.jsonl')
  cpSync(first, next)
  newerHeader(next)
  editLines(next, (line) => line.replace('"generation":2', '"generation":9'))
  writeFileSync(join(directory, `${INDEX_FILE}.new`), 'a draft')
  writeFileSync(`${next}.new`, 'another draft')
  appendFileSync(journalFiles(directory).at(-1) as string, '{"crc":"5b1d0e77","ru')
  beginNewerSegment(directory)
}

/** Every version begins a segment when it opens a folder. */
function beginNewerSegment(directory: string): void {
  const last = journalFiles(directory).at(-1) as string
  const header = withCrc('{"crc":"00000000","journal":99,"segment":14,"generation":0}')
  writeFileSync(last.replace('00013', '00014'), `${header}\n`)
}

type Change = (directory: string) => void

const newer: readonly (readonly [name: string, change: Change])[] = [
  ['the last segment', (directory) => newerHeader(journalFiles(directory).at(-1) as string)],
  [
    'a segment in the middle, without an index file',
    (directory) => {
      removeIndex(directory)
      newerHeader(journalFiles(directory)[5] as string)
    },
  ],
  ['a rewrite beside what it replaced and beside drafts', interruptedRewrite],
  [
    'the same without an index file',
    (directory) => {
      removeIndex(directory)
      interruptedRewrite(directory)
    },
  ],
  [
    'an index file, and a new segment after it',
    (directory) => {
      const path = join(directory, INDEX_FILE)
      const index = readFileSync(path, 'utf8')
      writeFileSync(path, index.replace('"checkpoint":1', '"checkpoint":99'))
      beginNewerSegment(directory)
    },
  ],
]

for (const [name, change] of newer) {
  test(`a folder of a newer version is refused and not changed: ${name}`, async (t) => {
    const directory = copied(t, { folder: 'v1-segments', change })
    const before = contentOf(directory)
    for (let attempt = 1; attempt <= 2; attempt++) {
      await assert.rejects(openStore(directory), {
        name: 'StoreError',
        code: 'ERR_AGENT_STORE_VERSION',
        message: /newer version .*install that version/,
      })
      assert.deepEqual(contentOf(directory), before)
    }
  })
}

function contentOf(directory: string): Map<string, string> {
  const names = readdirSync(directory).sort()
  return new Map(names.map((name) => [name, readFileSync(join(directory, name), 'latin1')]))
}

for (const change of [() => undefined, removeIndex]) {
  const index = change === removeIndex ? 'without' : 'with'
  test(`a run with records of a newer version is refused by itself, ${index} index`, async (t) => {
    const folder = 'v1-segments'
    const { heads, logs } = expectedOf(folder)
    const directory = copied(t, { folder, change })
    const newRun = sampleRun('newer', { createdAt: 1_900_000_000, status: 'running' })
    const records = JSON.stringify(newRun).replace('"v":1', '"v":99')
    const line = withCrc(`{"crc":"00000000","run":"newer","records":${records}}`)
    appendFileSync(journalFiles(directory).at(-1) as string, `${line}\n`)
    let store = await opened(t, directory)
    const refused = { code: 'ERR_AGENT_STORE_VERSION', message: /newer .*newer version.*99/ }
    for (let opening = 1; opening <= 3; opening++) {
      await assert.rejects(store.head('newer'), refused)
      await assert.rejects(readAll(store, 'newer'), refused)
      await assert.rejects(store.append('newer', [newRun[1] as RunRecord]), refused)
      for (const { details } of heads) {
        assert.equal(text(await readAll(store, details.run_id)), text(logs[details.run_id] ?? []))
      }
      await store.compact()
      await store.close()
      store = await opened(t, directory)
    }
    const lines = journalFiles(directory).map((path) => readFileSync(path, 'utf8')).join('')
    assert.match(lines, /"run":"newer","records":\[\{"v":99/)
  })
}

interface OldLibrary {
  readonly FileStore: new (options: { directory: string }) => { open(): Promise<void> }
}

for (const begins of ['by today\'s code', 'by version 0.1.0'] as const) {
  test(`version 0.1.0 refuses, and does not change, a folder that was begun ${begins}`, async (t) => {
    const bundle = new URL('../../fixtures/versions/agent-1.mjs', import.meta.url)
    const { FileStore: OldStore } = (await import(bundle.href)) as OldLibrary
    const isNew = begins === 'by today\'s code'
    const directory = isNew ? join(scratch(t), 'data') : copied(t, { folder: 'v1-segments' })
    for (const compacts of [false, true]) {
      const store = await openStore(directory, { segmentBytes: 4_096 })
      await store.append(`run-of-${compacts}`, sampleRun(`run-of-${compacts}`))
      if (compacts) await store.compact()
      await store.close()
      const before = contentOf(directory)
      await assert.rejects(new OldStore({ directory }).open(), {
        code: 'ERR_AGENT_STORE_VERSION',
        message: /newer version/,
      })
      assert.deepEqual(contentOf(directory), before)
    }
  })
}
