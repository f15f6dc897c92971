import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileStore, type FileStoreOptions, type RunRecord } from 'runwright/agent'
import { ManualClock } from 'runwright/agent/testing'
import { encodeHeader, encodeRecords } from '../../../lib/agent/stores/file/journal-line.js'
import { sampleRun, type SampleRunOptions } from '../../../lib/agent/testing/sample-records.js'
import { Random } from '../../helpers/random.js'
import { testFileStore } from './file-contract.js'
import {
  assertHolds,
  copyStore,
  INDEX_FILE,
  journalFiles,
  openStore,
  readAll,
  temporaryFolder,
} from './store-files.js'

testFileStore('FileStore', {})

test('other users have no access to the data directory and its files', async (t) => {
  const directory = join(temporaryFolder(t), 'a', 'b')
  const store = await openStore(directory)
  await store.append('a', sampleRun('a'))
  await store.compact()
  assert.equal(statSync(directory).mode & 0o777, 0o700)
  const names = readdirSync(directory)
  assert.deepEqual(names.sort(), [INDEX_FILE, 'journal-00000001.0.jsonl', 'lock', 'tail'])
  for (const name of names) assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name)
  await store.close()
  chmodSync(directory, 0o755)
  await (await openStore(directory)).close()
  assert.equal(statSync(directory).mode & 0o777, 0o700)
})

test('every line of the journal is one JSON object', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  await store.append('a', sampleRun('a', { records: 5 }))
  await store.delete('a')
  await store.close()
  const lines = readFileSync(journalFiles(directory)[0] ?? '', 'utf8').trimEnd().split('\n')
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(parsed.map((line) => Object.keys(line).slice(1, 3).join()), [
    'journal,segment',
    'run,records',
    'run,deleted',
  ])
})

test('a tail torn at any byte is cut off, and appends continue', async (t) => {
  const directory = temporaryFolder(t, 'in memory')
  const store = await openStore(directory)
  const running = (records: number): SampleRunOptions => ({ records, status: 'running' })
  const logs = new Map([['a', sampleRun('a', running(3))], ['b', sampleRun('b', running(3))]])
  for (const [runId, records] of logs) await store.append(runId, records)
  const [journal = ''] = journalFiles(directory)
  const durable = statSync(journal).size
  const witness = readFileSync(join(directory, 'tail'))
  // One group: its own line, two of run a, the second with two records, and one of run b.
  const more = sampleRun('a', running(6)).slice(3)
  const other = sampleRun('b', running(4)).slice(3)
  await Promise.all([
    store.append('a', more.slice(0, 1)),
    store.append('b', other),
    store.append('a', more.slice(1)),
  ])
  const end = statSync(journal).size
  await store.close()
  const text = readFileSync(journal)
  const lineEnds = [...text.keys()].filter((i) => i >= durable && text[i] === 10).map((i) => i + 1)
  assert.deepEqual(lineEnds.length, 4)
  for (let cut = durable; cut <= end; cut++) {
    for (const later of journalFiles(directory).slice(1)) rmSync(later)
    writeFileSync(join(directory, 'tail'), witness)
    writeFileSync(journal, text.subarray(0, cut))
    const again = await openStore(directory, { sync: 'none' })
    assert.deepEqual(again.quarantined, [])
    const whole = lineEnds.filter((at) => at <= cut).length
    const expected = new Map(logs)
    const ofA = [0, 0, 1, 1, 3][whole] ?? 0
    expected.set('a', [...(logs.get('a') ?? []), ...more.slice(0, ofA)])
    if (whole >= 3) expected.set('b', [...(logs.get('b') ?? []), ...other])
    await assertHolds(again, expected)
    const next = { ...more[0], seq: 4 + ofA } as RunRecord
    await again.append('a', [next])
    assert.deepEqual((await readAll(again, 'a')).at(-1), next)
    await again.close()
    assert.equal(readFileSync(journal).at(-1), 10)
  }
})

test('unfinished segments and index files of a crash are removed', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  const logs = new Map([['a', sampleRun('a')]])
  await store.append('a', sampleRun('a'))
  await store.close()
  const name = (id: number): string => join(directory, `journal-0000000${id}.0.jsonl`)
  for (const header of [Buffer.alloc(0), encodeHeader(2, 0).subarray(0, 20), encodeHeader(2, 0)]) {
    writeFileSync(name(2), header)
    writeFileSync(join(directory, `${INDEX_FILE}.new`), 'half')
    writeFileSync(join(directory, 'journal-00000001.1.jsonl.new'), 'half')
    const again = await openStore(directory)
    assert.deepEqual(again.quarantined, [])
    await assertHolds(again, logs)
    await again.append('b', sampleRun('b'))
    await again.delete('b')
    await again.close()
    assert.ok(readdirSync(directory).every((file) => !file.endsWith('.new')))
  }
})

test('a damaged line quarantines its run and no other', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  const logs = new Map(['a', 'b', 'c'].map((id) => [id, sampleRun(id, { records: 8 })]))
  for (let i = 0; i < 8; i += 2) {
    for (const [id, records] of logs) await store.append(id, records.slice(i, i + 2))
  }
  await store.close()
  const [journal = ''] = journalFiles(directory)
  const text = readFileSync(journal)
  const at = text.indexOf('all well', text.indexOf('"run":"b"', text.length >> 1))
  text.write('ALL', at)
  writeFileSync(journal, text)
  for (const round of ['from the journal', 'from the index file']) {
    const again = await openStore(directory)
    assert.deepEqual(again.quarantined.map(({ runId }) => runId), ['b'], round)
    assert.match(again.quarantined[0]?.reason ?? '', /journal-00000001.* at byte \d+ is damaged/)
    const corrupt = { code: 'ERR_AGENT_STORE_CORRUPT', message: /run b .* delete the run/ }
    await assert.rejects(again.read('b', 0, 10), corrupt)
    await assert.rejects(again.head('b'), corrupt)
    await assert.rejects(again.append('b', sampleRun('b')), corrupt)
    logs.delete('b')
    await assertHolds(again, logs)
    await again.compact()
    await again.close()
  }
  const again = await openStore(directory)
  await again.delete('b')
  assert.deepEqual(again.quarantined, [])
  assert.equal(await again.head('b'), null)
  await again.append('b', sampleRun('b'))
  await again.close()
  rmSync(join(directory, INDEX_FILE))
  const last = await openStore(directory)
  assert.deepEqual(last.quarantined, [])
  assert.deepEqual(await readAll(last, 'b'), sampleRun('b'))
  await last.close()
})

test('damage to segments that the index file covers is found by open()', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory, { segmentBytes: 4096 })
  const logs = new Map<string, RunRecord[]>(
    Array.from({ length: 20 }, (_, i) => [`r${i}`, sampleRun(`r${i}`)]),
  )
  for (const [id, records] of logs) await store.append(id, records)
  await store.compact()
  await store.close()
  const [, second = ''] = journalFiles(directory)
  const text = readFileSync(second)
  const runId = /"run":"(r\d+)"/.exec(text.toString())?.[1] ?? ''
  text.write('#', text.indexOf(`"run":"${runId}"`) + 40)
  writeFileSync(second, text)
  const warnings: string[] = []
  const again = await openStore(directory, { onWarning: ({ message }) => warnings.push(message) })
  assert.deepEqual(again.quarantined.map((run) => run.runId), [runId])
  assert.match(warnings.join(), new RegExp(`run ${runId} is quarantined`))
  logs.delete(runId)
  await assertHolds(again, logs)
  await again.close()
})

test('a large journal is verified after the store is opened', async (t) => {
  const directory = temporaryFolder(t, 'in memory')
  const store = await openStore(directory, { sync: 'none' })
  const text = 'z'.repeat(1 << 20)
  const ids = Array.from({ length: 12 }, (_, i) => `run-${i}`)
  // Two megabytes each, which is more than open() verifies.
  for (const id of ids) await store.append(id, sampleRun(id, { records: 4, text }))
  await store.compact()
  await store.close()
  const [journal = ''] = journalFiles(directory)
  const data = readFileSync(journal)
  data.write('#', data.indexOf('zzz', data.indexOf('"run":"run-3"')) + 1_000)
  writeFileSync(journal, data)
  const again = await openStore(directory)
  await again.verified()
  assert.deepEqual(again.quarantined.map(({ runId }) => runId), ['run-3'])
  await assert.rejects(readAll(again, 'run-3'), { code: 'ERR_AGENT_STORE_CORRUPT' })
  assert.equal((await readAll(again, 'run-4')).length, 4)
  await again.close()
})

test('damage found by a read quarantines the run', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  await store.append('a', sampleRun('a'))
  await store.append('b', sampleRun('b'))
  const [journal = ''] = journalFiles(directory)
  const data = readFileSync(journal)
  data.write('#', data.indexOf('all well', data.indexOf('"run":"b"')))
  writeFileSync(journal, data)
  const message = /run b is quarantined: .* is damaged/
  const corrupt = { code: 'ERR_AGENT_STORE_CORRUPT', message }
  await assert.rejects(readAll(store, 'b'), corrupt)
  await assert.rejects(store.head('b'), corrupt)
  assert.deepEqual(store.quarantined.map(({ runId }) => runId), ['b'])
  assert.equal((await readAll(store, 'a')).length, 4)
  assert.equal((await store.counts()).achieved, 1)
  await store.close()
})

test('damage of unknown runs quarantines every live run that may have lost records', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  const running = (id: string): RunRecord[] => sampleRun(id, { status: 'running', records: 3 })
  await store.append('ended', sampleRun('ended'))
  await store.append('before', running('before'))
  await store.append('after', running('after'))
  await store.append('lost', running('lost'))
  await store.append('after', [{ ...running('after')[2], seq: 4 } as RunRecord])
  await store.close()
  const [journal = ''] = journalFiles(directory)
  const text = readFileSync(journal)
  const start = text.indexOf('{"crc"', text.indexOf('"run":"after"'))
  text.fill(0, start, text.indexOf(10, start))
  writeFileSync(journal, text)
  const again = await openStore(directory)
  assert.deepEqual(again.quarantined.map(({ runId }) => runId), ['before'])
  assert.equal((await readAll(again, 'ended')).length, 4)
  assert.equal((await readAll(again, 'after')).length, 4)
  await again.close()
})

test('after damage at any offset each run is either whole or quarantined', async (t) => {
  const folder = temporaryFolder(t, 'in memory')
  const directory = join(folder, 'whole')
  const store = await openStore(directory, { segmentBytes: 8192 })
  const ids = Array.from({ length: 12 }, (_, i) => `run-${i}`)
  const logs = new Map(ids.map((id) => [id, sampleRun(id, { records: 12 })]))
  for (let at = 0; at < 12; at += 3) {
    await Promise.all([...logs].map(([id, records]) => store.append(id, records.slice(at, at + 3))))
  }
  // Damage to the last line counts as a torn tail, so this run is not among those checked.
  await store.append('last', sampleRun('last'))
  await store.close()
  const random = new Random(20_240_601)
  for (let round = 0; round < 120; round++) {
    const copy = copyStore(directory, join(folder, 'copy'))
    if (round % 2 === 0) rmSync(join(copy, INDEX_FILE), { force: true })
    const files = journalFiles(copy)
    const path = random.pick(files)
    const data = readFileSync(path)
    const at = random.integer(0, data.length - 2)
    const length = Math.min(random.pick([1, 1, 3, 700]), data.length - at)
    for (let i = at; i < at + length; i++) data[i] = random.chance(0.3) ? 0 : random.integer(0, 255)
    writeFileSync(path, data)
    const again = await openStore(copy, { sync: 'none' })
    const quarantined = new Set(again.quarantined.map(({ runId }) => runId))
    for (const [runId, records] of logs) {
      if (quarantined.has(runId)) {
        await assert.rejects(readAll(again, runId), { code: 'ERR_AGENT_STORE_CORRUPT' })
      } else {
        assert.deepEqual(await readAll(again, runId), records, `round ${round}: ${runId}`)
      }
    }
    await again.append('new', sampleRun('new'))
    assert.deepEqual(await readAll(again, 'new'), sampleRun('new'))
    await again.close()
    rmSync(copy, { recursive: true })
  }
})

test('a damaged or stale index file is not used', async (t) => {
  const folder = temporaryFolder(t, 'in memory')
  const directory = join(folder, 'whole')
  const store = await openStore(directory, { segmentBytes: 4096 })
  const logs = new Map(Array.from({ length: 30 }, (_, i) => [`run-${i}`, sampleRun(`run-${i}`)]))
  for (const [id, records] of logs) await store.append(id, records)
  await store.compact()
  const stale = readFileSync(join(directory, INDEX_FILE))
  for (const id of ['run-3', 'run-4', 'run-5', 'run-6', 'run-7', 'run-8']) {
    await store.delete(id)
    logs.delete(id)
  }
  await store.compact()
  await store.append('more', sampleRun('more'))
  logs.set('more', sampleRun('more'))
  await store.close()
  const good = readFileSync(join(directory, INDEX_FILE))
  const random = new Random(7)
  const variants: Buffer[] = [stale, Buffer.alloc(0), Buffer.alloc(300, 65)]
  variants.push(good.subarray(0, good.length >> 1))
  for (let i = 0; i < 40; i++) {
    const copy = Buffer.from(good)
    const at = random.integer(0, copy.length - 1)
    copy[at] = (copy[at] ?? 0) ^ random.integer(1, 255)
    variants.push(copy)
  }
  for (const content of variants) {
    const copy = copyStore(directory, join(folder, 'copy'))
    writeFileSync(join(copy, INDEX_FILE), content)
    const again = await openStore(copy, { sync: 'none' })
    assert.deepEqual(again.quarantined, [])
    await assertHolds(again, logs)
    await again.compact()
    await assertHolds(again, logs)
    await again.close()
    rmSync(copy, { recursive: true })
  }
})

test('a record of a newer version makes its run unusable, and no other', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  await store.append('old', sampleRun('old'))
  await store.append('new', sampleRun('new', { status: 'running', records: 3 }))
  await store.close()
  const future = { ...sampleRun('new')[2], seq: 4, v: 5 } as unknown as RunRecord
  appendFileSync(journalFiles(directory)[0] ?? '', encodeRecords('new', [future]))
  for (const round of [1, 2]) {
    const again = await openStore(directory)
    const refused = {
      code: 'ERR_AGENT_STORE_VERSION',
      message: /run new .*format 5.* reads up to 4/,
    }
    await assert.rejects(again.read('new', 0, 10), refused, `round ${round}`)
    await assert.rejects(again.append('new', [future]), refused)
    assert.deepEqual(again.quarantined.map(({ runId }) => runId), ['new'])
    assert.equal((await readAll(again, 'old')).length, 4)
    await again.compact()
    await again.close()
  }
})

test('a journal of a newer version is neither opened nor changed', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  await store.append('a', sampleRun('a'))
  await store.close()
  const [journal = ''] = journalFiles(directory)
  const { crc32 } = await import('node:zlib')
  const rest = '"journal":3,"segment":2,"generation":0,"replaces":[]}'
  const line = `{"crc":"${crc32(rest).toString(16).padStart(8, '0')}",${rest}\n`
  writeFileSync(journal.replace('01.0', '02.0'), line)
  const newer = { code: 'ERR_AGENT_STORE_VERSION', message: /newer version/ }
  await assert.rejects(openStore(directory), newer)
  assert.equal(readFileSync(journal.replace('01.0', '02.0'), 'utf8'), line)
  assert.equal(readdirSync(directory).includes('lock'), false)
})

test('ended runs beyond retain.runs or retain.days are dropped, live runs never', async (t) => {
  const directory = temporaryFolder(t)
  const clock = new ManualClock(1_700_000_000_000)
  const options = { clock, retain: { runs: 3, days: 10 } }
  const store = await openStore(directory, options)
  const put = async (runId: string, status: 'running' | 'achieved'): Promise<void> => {
    await store.append(runId, sampleRun(runId, { createdAt: clock.now() / 1000, status }))
    clock.advance(1_000)
  }
  const listed = async (from: FileStore): Promise<string> => {
    const { heads } = await from.list({ limit: 100 })
    return heads.map(({ details }) => details.run_id).join('')
  }
  await put('l', 'running')
  for (const runId of ['a', 'b', 'c', 'd', 'e']) await put(runId, 'achieved')
  await store.delete('unknown')
  await store.append('f', sampleRun('f', { createdAt: clock.now() / 1000, status: 'running' }))
  assert.equal(await listed(store), 'fedcl')
  await store.close()
  clock.advance(11 * 86_400_000)
  const again = await openStore(directory, options)
  await again.append('g', sampleRun('g', { createdAt: clock.now() / 1000, status: 'running' }))
  assert.equal(await listed(again), 'gfl')
  await again.close()
})

for (const { option, value, problem } of [
  { option: 'directory', value: '', problem: /directory must be the path of a folder/ },
  { option: 'segmentBytes', value: 10, problem: /segmentBytes must be an integer/ },
  { option: 'sync', value: 'always', problem: /sync must be 'group' or 'none'/ },
  { option: 'retain', value: { runs: -1 }, problem: /retain\.runs must be/ },
  { option: 'retain', value: { days: Number.NaN }, problem: /retain\.days must be/ },
]) {
  test(`the constructor refuses ${option} ${JSON.stringify(value)}`, () => {
    const options = { directory: '/nowhere', [option]: value } as unknown as FileStoreOptions
    assert.throws(() => new FileStore(options), problem)
  })
}

test('calls before open() and a second open() are rejected', async (t) => {
  const directory = temporaryFolder(t)
  const store = new FileStore({ directory })
  await assert.rejects(store.head('a'), { code: 'ERR_AGENT_STORE', message: /call open\(\) first/ })
  await store.open()
  await assert.rejects(store.open(), { code: 'ERR_AGENT_STORE' })
  await store.close()
})

test('an unusable data directory is refused', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'file'), '')
  const wrong = { code: 'ERR_AGENT_STORE', message: /cannot use .* as data directory/ }
  await assert.rejects(openStore(join(folder, 'file')), wrong)
  await assert.rejects(openStore(join(folder, 'file', 'below')), wrong)
  mkdirSync(join(folder, 'journal', 'journal-00000001.0.jsonl'), { recursive: true })
  await assert.rejects(openStore(join(folder, 'journal')), wrong)
  assert.equal(readdirSync(join(folder, 'journal')).includes('lock'), false)
})

const asRoot = { skip: skipUnlessRoot() }

test('a directory to which the user has no write access is refused', asRoot, async (t) => {
  const directory = temporaryFolder(t)
  chmodSync(directory, 0o755)
  const { seteuid } = process as { seteuid(uid: number): void }
  seteuid(65_534)
  try {
    const denied = { code: 'ERR_AGENT_STORE', message: /EACCES/ }
    await assert.rejects(openStore(join(directory, 'data')), denied)
  } finally {
    seteuid(0)
  }
})

function skipUnlessRoot(): string | false {
  return process.getuid?.() === 0 ? false : 'needs root, to switch to another user'
}


test('damage that only a reader finds is reported as well, once', async (t) => {
  const directory = temporaryFolder(t)
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  const store = await openStore(directory, { onWarning })
  await store.append('a', sampleRun('a'))
  await store.append('b', sampleRun('b'))
  const [journal = ''] = journalFiles(directory)
  const text = readFileSync(journal)
  text.write('#', text.indexOf('"run":"a"') + 40)
  writeFileSync(journal, text)
  for (let attempt = 1; attempt <= 2; attempt++) {
    await assert.rejects(store.read('a', 0, 10), { code: 'ERR_AGENT_STORE_CORRUPT' })
  }
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] ?? '', /run a is quarantined/)
  assert.deepEqual(store.damage().runs.map(({ runId }) => runId), ['a'])
  const { heads } = await store.list({ limit: 10 })
  assert.deepEqual(heads.map(({ problem }) => problem !== undefined), [false, true])
  assert.deepEqual(await readAll(store, 'b'), sampleRun('b'))
  await store.close()
})

test('bytes that name no run are one damage, however many lines they look like', async (t) => {
  const directory = temporaryFolder(t)
  const store = await openStore(directory)
  await store.append('before', sampleRun('before', { records: 3, status: 'running' }))
  await store.append('lost', sampleRun('lost', { text: 'x'.repeat(400_000) }))
  await store.append('after', sampleRun('after', { records: 3, status: 'running' }))
  await store.close()
  const [journal = ''] = journalFiles(directory)
  const text = readFileSync(journal)
  const start = text.indexOf('"run":"lost"')
  text.fill('\n', start, start + 300_000)
  writeFileSync(journal, text)
  rmSync(join(directory, INDEX_FILE))
  for (const round of ['from the journal', 'from the index file']) {
    const warnings: string[] = []
    const onWarning = ({ message }: Error): void => void warnings.push(message)
    const again = await openStore(directory, { onWarning })
    assert.ok(again.damage().files.length <= 2, round)
    assert.ok(warnings.length <= 5, `${round}: ${warnings.length} warnings`)
    const quarantined = again.quarantined.map(({ runId }) => runId)
    assert.deepEqual(quarantined.sort(), ['before', 'lost'], round)
    await again.compact()
    await again.close()
  }
})
