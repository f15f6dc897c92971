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
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { scratch } from '../../helpers/engine.js'
import { assertHolds, INDEX_FILE, journalFiles, openStore, readAll } from './store-files.js'

test('other users have no access to the data directory and its files', async (t) => {
  const directory = join(scratch(t), 'a', 'b')
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
  const directory = scratch(t)
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

test('unfinished segments and index files of a crash are removed', async (t) => {
  const directory = scratch(t)
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
  const directory = scratch(t)
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
  const directory = scratch(t)
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

test('damage found by a read quarantines the run', async (t) => {
  const directory = scratch(t)
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
  const directory = scratch(t)
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

test('a record of a newer version makes its run unusable, and no other', async (t) => {
  const directory = scratch(t)
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
  const directory = scratch(t)
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
  const directory = scratch(t)
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
  const directory = scratch(t)
  const store = new FileStore({ directory })
  await assert.rejects(store.head('a'), { code: 'ERR_AGENT_STORE', message: /call open\(\) first/ })
  await store.open()
  await assert.rejects(store.open(), { code: 'ERR_AGENT_STORE' })
  await store.close()
})

test('an unusable data directory is refused', async (t) => {
  const folder = scratch(t)
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
  const directory = scratch(t)
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
  const directory = scratch(t)
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
