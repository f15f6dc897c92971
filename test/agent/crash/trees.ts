/** Trees of runs whose processes die at any write. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { EventKind, JsonObject, RunRecord, RunStore } from 'runwright/agent'
import { assertInvariants } from '../../helpers/invariants.js'
import { Random } from '../../helpers/random.js'
import type { TreePlan } from './programs.js'
import type { Place, Storage } from './storage.js'

/** What each tree is asked to do, and the files that it leaves. */
const TREES: Readonly<Record<string, { request: JsonObject; files: readonly string[][] }>> = {
  first: {
    request: {
      goal: 'shell: grep -q good answer.txt',
      max_iterations: 1,
      attempts: { count: 3, models: ['test:bad', 'test:x', 'test:y'] },
    },
    files: [['answer.txt', 'good x\n'], ['answer.txt', 'good y\n']],
  },
  smallest: {
    request: {
      goal: 'shell: grep -q good answer.txt',
      max_iterations: 1,
      attempts: { count: 2, models: ['test:long', 'test:x'], choose: 'smallest' },
    },
    files: [['answer.txt', 'good long\n'], ['answer.txt', 'good x\n']],
  },
  delegate: {
    request: {
      goal: 'shell: grep -q a a.txt && grep -q b b.txt',
      model_name: 'test:boss',
      delegation: { children: 2 },
    },
    files: [['a.txt', 'a\n', 'b.txt', 'b\n']],
  },
  startRun: {
    request: {
      goal: 'shell: grep -q a a.txt && grep -q b b.txt',
      model_name: 'test:host',
      delegation: { children: 2 },
    },
    files: [['a.txt', 'a\n', 'b.txt', 'b\n']],
  },
}

/** Kills before the process that ends its tree. */
const KILLS_OF_TREE = 4

async function recordsOf(store: RunStore): Promise<ReadonlyMap<string, readonly RunRecord[]>> {
  const { heads } = await store.list({ limit: 100 })
  const logs = new Map<string, readonly RunRecord[]>()
  for (const { details } of heads)
    logs.set(details.run_id, await store.read(details.run_id, 0, 10_000))
  return logs
}

function idsIn(records: readonly RunRecord[], ...kinds: readonly EventKind[]): string[] {
  return records
    .filter(({ kind }) => kinds.includes(kind))
    .map(({ payload }) => (payload as { readonly run_id: string }).run_id)
}

async function assertTree(name: string, place: Place, context: string): Promise<void> {
  const store = await place.next()
  await store.open()
  try {
    const logs = await recordsOf(store)
    const isRoot = ([first]: readonly RunRecord[]): boolean =>
      first?.kind === 'run_created' && first.payload.role === undefined
    const roots = [...logs].filter(([, records]) => isRoot(records))
    assert.equal(roots.length, 1, context)
    const [rootId, log] = roots[0]!
    const head = await store.head(rootId)
    const story = log.map(({ kind }) => kind).join(' ')
    assert.equal(head?.details.status, 'achieved', `${context}: ${story}`)
    for (const records of logs.values()) {
      assert.equal(records.filter(({ kind }) => kind === 'run_end').length, 1, context)
    }
    for (const records of logs.values()) assertInvariants(records)
    const started = idsIn(log, 'attempt_started', 'delegate_started')
    assert.equal(new Set(started).size, started.length, context)
    const children = [...logs.keys()].filter((id) => id !== rootId)
    assert.deepEqual(children.filter((id) => !started.includes(id)), [], `${context}: no other run`)
    const ended = idsIn(log, 'attempt_ended', 'delegate_ended')
    assert.deepEqual([...ended].sort(), [...started].sort(), `${context}: each end once`)
    const end = log.find(({ kind }) => kind === 'run_end')!
    for (const id of children) {
      const last = logs.get(id)!.find(({ kind }) => kind === 'run_end')!
      assert.ok(last.ts <= end.ts, `${context}: children end first`)
    }
    if (name === 'first' || name === 'smallest') {
      assert.equal(idsIn(log, 'attempt_chosen').length, 1, context)
      assert.equal(started.length, name === 'first' ? 3 : 2, context)
      const changing = log.filter(({ kind }) => kind === 'files_changing')
      assert.equal(changing.length, 1, `${context}: applied once`)
      assert.equal(head.details.changes, 'applied', context)
    } else {
      const merges = idsIn(log, 'files_changing')
      assert.equal(new Set(merges).size, merges.length, `${context}: merged once`)
    }
    const names = readdirSync(place.root).filter((file) => file.endsWith('.txt')).sort()
    const files = names.flatMap((file) => [file, readFileSync(join(place.root, file), 'utf8')])
    const known = TREES[name]!.files.map((one) => JSON.stringify([...one, 'start.txt', 'start\n']))
    assert.ok(known.includes(JSON.stringify(files)), `${context}: ${JSON.stringify(files)}`)
  } finally {
    await store.close()
  }
}

/** Registers the crashes of trees for a kind of store. */
export function testTrees(storage: Storage): void {
  for (const name of Object.keys(TREES))
    test(`a tree ends once, however often its process dies, in ${storage.name}: ${name}`,
      async (t) => await assertTrees(t, storage, name))
}

async function assertTrees(t: TestContext, storage: Storage, name: string): Promise<void> {
  const { request } = TREES[name]!
  const seed = Number(process.env['RUNWRIGHT_SEED'] ?? 7)
  const random = new Random(seed)
  const rounds = Math.ceil(storage.deaths / (KILLS_OF_TREE * Object.keys(TREES).length))
  t.diagnostic(`seed ${seed}, ${rounds} rounds`)
  for (let round = 0; round < rounds; round++) {
    const place = await storage.place(t)
    writeFileSync(join(place.root, 'start.txt'), 'start\n')
    const plan: TreePlan = { root: place.root, copies: place.copies, request }
    const kills: number[] = []
    for (;;) {
      const dieAt = kills.length < KILLS_OF_TREE ? random.integer(1, 150) : 0
      kills.push(dieAt)
      if ((await place.driveTree(plan, dieAt)).signal === null) break
    }
    await assertTree(name, place, `kills ${kills.join()}`)
  }
}
