/** Data folders with checkpoints as earlier versions wrote them; see `make-checkpoints.mjs`. */
import assert from 'node:assert/strict'
import {
  chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FileStore, RunEngine, type Checkpoint, type NetChanges } from 'runwright/agent'
import { ObjectUse } from '../../../lib/agent/checkpoints/object-use.js'
import { Reclaimer } from '../../../lib/agent/checkpoints/reclaim.js'
import { scratch, testProvider } from '../../helpers/engine.js'
import { openStore, readAll } from './store-files.js'

const fixtures = fileURLToPath(new URL('../../fixtures/stores/', import.meta.url))
/** The folder of the runs in the records. */
const CWD = '/srv/projects/demo'

/** Base64 by path. */
type Files = Readonly<Record<string, string>>

interface Stored {
  readonly status: string
  readonly pending: string | null
  readonly checkpoints: readonly Checkpoint[]
  readonly changes: NetChanges
  /** By checkpoint. */
  readonly files: Readonly<Record<string, Files>>
}

/** The store of an engine for which the runs are in `work`. */
function relocated(directory: string, work: string): FileStore {
  const store = new FileStore({ directory, onWarning: (problem) => assert.fail(problem) })
  const moved = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll(CWD, work)) as T
  const { read, head, list } = store
  store.read = async (...args) => moved(await read.apply(store, args))
  store.head = async (...args) => moved(await head.apply(store, args))
  store.list = async (...args) => moved(await list.apply(store, args))
  return store
}

function write(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), Buffer.from(content, 'base64'))
  }
  symlinkSync('text.txt', join(folder, 'link'))
  writeFileSync(join(folder, '.env'), 'TOKEN=never-stored\n')
}

/** The regular files of a folder, but for what is never stored. */
function filesOf(folder: string): Files {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => {
    return path !== '.env' && path !== 'link' && statSync(join(folder, path)).isFile()
  })
  return Object.fromEntries(
    paths.map((path) => [path, readFileSync(join(folder, path)).toString('base64')]),
  )
}

for (const folder of ['v1-loose', 'v1-packed', 'v1-headed', 'v2-folders']) {
  test(`runs with checkpoints in ${folder} open: changes, files, restore, apply`, async (t) => {
    const runs = JSON.parse(readFileSync(join(fixtures, `${folder}.json`), 'utf8')) as
      Readonly<Record<string, Stored>>
    const directory = join(scratch(t), 'data')
    cpSync(join(fixtures, folder), directory, { recursive: true })
    const work = scratch(t)
    const [[inPlace, first], [isolated, second], [fork, third]] = Object.entries(runs) as
      [[string, Stored], [string, Stored], [string, Stored]]
    const [start, end] = first.checkpoints.map(({ checkpoint_id }) => checkpoint_id)
    const cwd = join(work, 'in-place')
    write(cwd, first.files[end!]!)
    chmodSync(join(cwd, 'sub/b'), 0o755)
    chmodSync(join(cwd, 'sub'), 0o750)
    write(join(work, 'isolated'), second.files[start!]!)
    const engine = await RunEngine.open({
      store: relocated(directory, work), roots: [work], defaultModel: 'test:m',
      providers: [testProvider(() => ({}))], workspaceFolder: join(scratch(t), 'copies'),
    })
    t.after(() => engine.close())
    const { workspaces } = engine
    for (const [id, stored] of Object.entries(runs)) {
      const { status, changes } = await engine.get(id)
      assert.deepEqual([status, changes], [stored.status, stored.pending])
      assert.deepEqual(await workspaces.checkpoints(id), stored.checkpoints)
      // They were stored before verdicts gave files a group.
      const known = stored.changes.changes.map((change) => ({ ...change, group: null }))
      assert.deepEqual(await workspaces.changes(id), { ...stored.changes, changes: known })
      for (const [at, files] of Object.entries(stored.files)) {
        for (const [path, content] of Object.entries(files)) {
          const read = await workspaces.read(id, path, { at, raw: true })
          assert.equal(Buffer.from(read.content).toString('base64'), content, path)
        }
      }
    }
    assert.ok(third.checkpoints.length > 0 && (await engine.get(fork)).forked_from !== null)
    const { checkpoint_id } = await workspaces.restore(inPlace, { checkpoint_id: start! })
    assert.deepEqual(filesOf(cwd), first.files[start!])
    const hasFolders = folder.startsWith('v2')
    assert.equal(existsSync(join(cwd, 'empty')), hasFolders)
    await workspaces.restore(inPlace, { checkpoint_id })
    assert.deepEqual(filesOf(cwd), first.files[end!])
    await workspaces.apply(isolated, {})
    assert.deepEqual(filesOf(join(work, 'isolated')), second.files[end!])
    await engine.close()

    const store = await openStore(directory)
    const said = (await readAll(store, inPlace)).filter(({ kind }) => kind === 'user_message')
    assert.equal(said.length, 1)
    const use = new ObjectUse(store.objects, false)
    const onProblem = (problem: Error): void => assert.fail(problem)
    const reclaimer = new Reclaimer({ store, use, onProblem })
    assert.equal((await reclaimer.sweep()).removed, 0)
    assert.deepEqual([reclaimer.problems, store.damage()], [[], { runs: [], files: [] }])
    for (const id of Object.keys(runs)) await store.delete(id)
    await reclaimer.sweep()
    assert.deepEqual(await store.objects.list(null, 10), [])
    await reclaimer.close()
    await store.close()
  })
}
