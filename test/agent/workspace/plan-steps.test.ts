import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { atOnce } from '../../../lib/internal/time.js'
import type { LeftOut, TreeEntry } from '../../../lib/agent/tree.js'
import { mergeTexts } from '../../../lib/agent/workspace/merge-text.js'
import { planApply, planRestore, type PathStep } from '../../../lib/agent/workspace/plan-steps.js'
import { Random } from '../../helpers/random.js'
import {
  contentsOf, entryOf, file, link, listing, put, randomEdits, randomModel, treeOf, type Model,
  type ModelFile,
} from '../../helpers/tree-model.js'

type Files = Readonly<Record<string, ModelFile>>

const model = (files: Files): Model => new Map(Object.entries(files))
const left = (reason: LeftOut['reason'], ...paths: string[]): LeftOut => ({
  reason,
  count: paths.length,
  paths,
})

/** Each step in one line. */
const shown = (steps: readonly PathStep[]): readonly string[] =>
  steps.map(({ path, before, after }) => `${path}: ${nameOf(before)} -> ${nameOf(after)}`)
const nameOf = (entry: TreeEntry | null): string =>
  entry === null ? '-' : `${NAMES.get(entry.sha256) ?? 'merged'}${MODES[entry.mode] ?? `/${entry.mode.toString(8)}`}`
const MODES: Readonly<Record<number, string>> = { 0o644: '', 0o755: '*', 0o777: '' }

const text = '1\n2\n3\n4\n5\n'
const [x, y, z, t] = [file('x'), file('y'), file('z'), file(text)]
const t1 = file(text.replace('1', 'one'))
const t5 = file(text.replace('5', 'five'))
const named = Object.entries({ x, y, z, t, t1, t5 })
const NAMES = new Map(named.map(([name, it]) => [hash('sha256', it.content), name]))
const exe = (it: ModelFile): ModelFile => ({ ...it, mode: 0o755 })

interface Case {
  readonly base: Files
  readonly ours: Files
  readonly theirs: Files
  readonly leftOut?: { readonly base?: LeftOut; readonly ours?: LeftOut; readonly theirs?: LeftOut }
  readonly paths?: readonly string[]
  readonly steps?: readonly string[]
  readonly conflicts?: readonly string[]
  readonly merged?: readonly string[]
  /** Steps with `force`. */
  readonly forced?: readonly string[]
}

const APPLY: Readonly<Record<string, Case>> = {
  'only ours changed': { base: { a: x, b: x }, ours: { a: y, c: z }, theirs: { a: x, b: x }, steps: ['a: x -> y', 'b: x -> -', 'c: - -> z'] },
  'only theirs changed': { base: { a: x }, ours: { a: x }, theirs: { a: y, b: z } },
  'both made the same': { base: { a: x }, ours: { a: y, b: z }, theirs: { a: y, b: z } },
  'both deleted': { base: { a: x }, ours: {}, theirs: {} },
  'both changed': { base: { a: x }, ours: { a: y }, theirs: { a: z }, conflicts: ['a'], forced: ['a: z -> y'] },
  'both added': { base: {}, ours: { a: y }, theirs: { a: z }, conflicts: ['a'], forced: ['a: z -> y'] },
  'deleted by us, changed by them': { base: { a: x }, ours: {}, theirs: { a: z }, conflicts: ['a'], forced: ['a: z -> -'] },
  'changed by us, deleted by them': { base: { a: x }, ours: { a: y }, theirs: {}, conflicts: ['a'], forced: ['a: - -> y'] },
  'other lines': { base: { a: t }, ours: { a: t1 }, theirs: { a: t5 }, merged: ['a'], steps: ['a: t5 -> merged'] },
  'a mode of ours and lines of theirs': { base: { a: t }, ours: { a: exe(t) }, theirs: { a: t5 }, steps: ['a: t5 -> t5*'] },
  'lines of ours and a mode of theirs': { base: { a: t }, ours: { a: t1 }, theirs: { a: exe(t) }, steps: ['a: t* -> t1*'] },
  'a program of ours, which they keep private': { base: { a: x }, ours: { a: exe(x) }, theirs: { a: file('x', 0o600) }, steps: ['a: x/600 -> x/700'] },
  'a private program of theirs that is none for us': { base: { a: exe(x) }, ours: { a: y }, theirs: { a: file('x', 0o750) }, steps: ['a: x/750 -> y/640'] },
  'permissions of ours to read': { base: { a: x, b: x }, ours: { a: file('x', 0o600), b: file('y', 0o600), c: file('z', 0o600) }, theirs: { a: x, b: x }, steps: ['b: x -> y', 'c: - -> z'] },
  'a program of both': { base: { a: x }, ours: { a: exe(y) }, theirs: { a: exe(x) }, conflicts: [], steps: ['a: x* -> y*'] },
  'a link of ours and lines of theirs': { base: { a: t }, ours: { a: link('x') }, theirs: { a: t5 }, conflicts: ['a'], forced: ['a: t5 -> x'] },
  'links with different targets': { base: { a: link('x') }, ours: { a: link('y') }, theirs: { a: link('z') }, conflicts: ['a'], forced: ['a: z -> y'] },
  'renamed by us, changed by them': { base: { a: t }, ours: { b: t }, theirs: { a: t5 }, conflicts: ['a'], steps: ['b: - -> t'], forced: ['a: t5 -> -', 'b: - -> t'] },
  'our file where they have a folder': { base: {}, ours: { a: x }, theirs: { 'a/b': y }, conflicts: ['a'], forced: ['a: - -> x', 'a/b: y -> -'] },
  'our folder where they have a file': { base: {}, ours: { 'a/b': x }, theirs: { a: y }, conflicts: ['a/b'], forced: ['a: y -> -', 'a/b: - -> x'] },
  'a file becomes a folder': { base: { a: x }, ours: { 'a/b': y }, theirs: { a: x }, steps: ['a: x -> -', 'a/b: - -> y'] },
  'a folder becomes a file': { base: { 'a/b': x }, ours: { a: y }, theirs: { 'a/b': x }, steps: ['a: - -> y', 'a/b: x -> -'] },
  'a folder in which they have more becomes a file': { base: { 'a/b': x }, ours: { a: y }, theirs: { 'a/b': x, 'a/c': z }, conflicts: ['a'], steps: ['a/b: x -> -'], forced: ['a: - -> y', 'a/b: x -> -', 'a/c: z -> -'] },
  'some paths only': { base: { a: x, b: x }, ours: { a: y, b: y }, theirs: { a: x, b: x }, paths: ['b'], steps: ['b: x -> y'] },
  'left out of theirs': { base: { a: x }, ours: { a: y }, theirs: {}, leftOut: { theirs: left('size', 'a') }, conflicts: ['a'], forced: [] },
  'below what is left out of theirs': { base: {}, ours: { 'a/b/c': y }, theirs: {}, leftOut: { theirs: left('unreadable', 'a/b') }, conflicts: ['a/b/c'], forced: [] },
  'above what is left out of theirs': { base: {}, ours: { a: y }, theirs: {}, leftOut: { theirs: left('secret', 'a/b/.env') }, conflicts: ['a'], forced: ['a: - -> y'] },
  'left out of ours is not deleted': { base: { a: x, 'b/c': x }, ours: {}, theirs: { a: x, 'b/c': x }, leftOut: { ours: left('size', 'a', 'b') } },
  'not all that was left out of ours is named': { base: { a: x, b: x }, ours: { b: y, c: z }, theirs: { a: x, b: x }, leftOut: { ours: { reason: 'count', count: 2_000, paths: [] } }, steps: ['b: x -> y', 'c: - -> z'] },
  'left out of the base is not added': { base: {}, ours: { a: x }, theirs: {}, leftOut: { base: left('size', 'a') } },
}

for (const [name, it] of Object.entries(APPLY)) {
  test(`apply: ${name}`, async () => {
    const [base, ours, theirs] = [model(it.base), model(it.ours), model(it.theirs)]
    const trees = {
      base: treeOf(base, it.leftOut?.base === undefined ? [] : [it.leftOut.base]),
      ours: treeOf(ours, it.leftOut?.ours === undefined ? [] : [it.leftOut.ours]),
      theirs: treeOf(theirs, it.leftOut?.theirs === undefined ? [] : [it.leftOut.theirs]),
    }
    const contentOf = contentsOf(base, ours, theirs)
    const options = it.paths === undefined ? {} : { paths: it.paths }
    const plan = await planApply(trees, contentOf, options)
    assert.deepEqual(shown(plan.steps), it.steps ?? [])
    assert.deepEqual(plan.conflicts, it.conflicts ?? [])
    assert.deepEqual(plan.merged, it.merged ?? [])
    const forced = await planApply(trees, contentOf, { ...options, force: true })
    assert.deepEqual(shown(forced.steps), it.forced ?? it.steps ?? [])
  })
}

test('apply: content that was not stored is a conflict, unless it is there already', async () => {
  const lost = { ...entryOf(y), stored: false } as const
  const treeWith = (entry: TreeEntry) => ({ entries: new Map([['a', entry]]), leftOut: [] })
  const base = treeWith(entryOf(x))
  const trees = { base, ours: treeWith(lost), theirs: base }
  const plan = await planApply(trees, contentsOf(), { force: true })
  assert.deepEqual([plan.steps, plan.conflicts], [[], ['a']])
  const theirs = treeWith(entryOf(exe(y)))
  const again = { base: treeWith(entryOf(exe(x))), ours: treeWith(lost), theirs }
  const mode = await planApply(again, contentsOf())
  assert.deepEqual(shown(mode.steps), ['a: y* -> y'])
})

test('apply: so many bytes are merged, and what is beyond is a conflict', async () => {
  const size = 1024 * 1024
  const paths = Array.from({ length: 30 }, (_, i) => `f${String(i).padStart(2, '0')}`)
  const treeWith = (it: ModelFile) => ({
    entries: new Map(paths.map((path) => [path, { ...entryOf(it), size }])),
    leftOut: [],
  })
  const trees = { base: treeWith(t), ours: treeWith(t1), theirs: treeWith(t5) }
  const plan = await planApply(trees, contentsOf(model({ t, t1, t5 })))
  // Three contents are read for each.
  assert.deepEqual(plan.merged, paths.slice(0, 21))
  assert.deepEqual(plan.conflicts, paths.slice(21))
})

/** What both sides made of a tree; null for a conflict. */
function bothChanged(base: Model, ours: Model, theirs: Model): Model | null {
  const key = (it: ModelFile | undefined): string =>
    JSON.stringify(it === undefined ? null : entryOf(it))
  const result = new Map<string, ModelFile>()
  for (const path of new Set([...base.keys(), ...ours.keys(), ...theirs.keys()])) {
    const [b, o, t] = [base.get(path), ours.get(path), theirs.get(path)]
    let value: ModelFile | undefined
    if (key(o) === key(b)) value = t
    else if (key(t) === key(b) || key(t) === key(o)) value = o
    else {
      if (b === undefined || o === undefined || t === undefined) return null
      if ([b, o, t].some((it) => it.link === true)) return null
      let mode: number | null = null
      if (t.mode === b.mode || t.mode === o.mode) mode = o.mode
      else if (o.mode === b.mode) mode = t.mode
      let content: Buffer | null
      if (t.content.equals(b.content) || t.content.equals(o.content)) content = o.content
      else if (o.content.equals(b.content)) content = t.content
      else content = atOnce(mergeTexts(b.content, o.content, t.content))
      if (mode === null || content === null) return null
      value = { content, mode }
    }
    if (value !== undefined) result.set(path, value)
  }
  const paths = [...result.keys()]
  return paths.some((path) => paths.some((other) => other.startsWith(`${path}/`))) ? null : result
}

test('applying random changes gives what both sides made, or names a conflict', async () => {
  const found = { clean: 0, merged: 0, conflicts: 0 }
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (let seed = 1; seed <= Number(process.env['ROUNDS'] ?? 300); seed++) {
    const random = new Random(Math.imul(seed, 0x9e3779b1))
    const base = randomModel(random, random.integer(0, 12), names)
    if (random.chance(0.5)) put(base, random.pick(names), t)
    const ours = randomEdits(random, base, random.integer(1, 5), names)
    const theirs = randomEdits(random, base, random.integer(0, 5), names)
    for (const [path, { content }] of base) {
      if (!content.equals(t.content)) continue
      if (ours.get(path)?.content.equals(content) === true) ours.set(path, t1)
      if (theirs.get(path)?.content.equals(content) === true) theirs.set(path, t5)
    }
    const trees = { base: treeOf(base), ours: treeOf(ours), theirs: treeOf(theirs) }
    const contentOf = contentsOf(base, ours, theirs)
    const plan = await planApply(trees, contentOf)
    const expected = bothChanged(base, ours, theirs)
    assert.equal(plan.conflicts.length === 0, expected !== null, `seed ${seed}: ${plan.conflicts}`)
    const forced = await planApply(trees, contentOf, { force: true })
    const both = expected === null ? [forced] : [plan, forced]
    for (const { steps, contents } of both) {
      const result = await performed(theirs, steps, async (entry) =>
        Buffer.from(contents.get(entry.sha256) ?? (await contentOf(entry))),
      )
      if (expected !== null) assert.deepEqual(listing(result), listing(expected), `seed ${seed}`)
      const clean = new Map(result)
      for (const [path, it] of result) put(clean, path, it)
      assert.equal(clean.size, result.size, `seed ${seed}: a file lies where a folder must be`)
      // Forced, everything that we changed is ours but for what merged.
      for (const { path, after } of atOnce(planRestore(trees.base, trees.ours))) {
        if (after === null) assert.ok(!result.has(path), `seed ${seed}: ${path}`)
        else assert.ok(result.has(path), `seed ${seed}: ${path}`)
      }
    }
    found[expected === null ? 'conflicts' : plan.merged.length > 0 ? 'merged' : 'clean'] += 1
  }
  assert.ok(Math.min(...Object.values(found)) > 10, JSON.stringify(found))
})

async function performed(
  model: Model,
  steps: readonly PathStep[],
  contentOf: (entry: TreeEntry) => Promise<Buffer>,
): Promise<Map<string, ModelFile>> {
  const result = new Map(model)
  for (const { path, before, after } of steps) {
    const now = model.get(path)
    assert.deepEqual(now === undefined ? null : entryOf(now), before, path)
    result.delete(path)
    if (after === null) continue
    const content = await contentOf(after)
    const kind = after.kind === 'link' ? { link: true } : {}
    result.set(path, { content, mode: after.mode, ...kind })
  }
  return result
}

test('restore: everything that differs, and nothing that one of both trees does not tell of', () => {
  const now = treeOf(model({ a: x, b: x, 'new/c': y, big: x, 'lib/x': x }), [left('size', 'huge')])
  const leftOut = [left('size', 'big'), left('unreadable', 'lib')]
  const then = treeOf(model({ a: x, b: y, d: z, huge: z }), leftOut)
  const steps = atOnce(planRestore(now, then))
  assert.deepEqual(shown(steps), ['b: x -> y', 'd: - -> z', 'new/c: y -> -'])
})

test('apply: new folders without files are brought, others stay as they are', async () => {
  const treeWith = (files: Files, folders: Readonly<Record<string, number>>) => ({
    ...treeOf(model(files)), folders: new Map(Object.entries(folders)),
  })
  const base = treeWith({ 'a/f': x, 'b/f': x }, { a: 0o755, b: 0o755, old: 0o755 })
  const made = { new: 0o700, 'new/deep': 0o755, there: 0o755, file: 0o755, 'file/in': 0o755 }
  const ours = treeWith({ 'a/f': x, 'c/f': x }, { a: 0o700, b: 0o755, c: 0o755, ...made })
  const theirFolders = { a: 0o755, b: 0o755, old: 0o755, there: 0o711 }
  const theirs = treeWith({ 'a/f': x, 'b/f': x, file: y }, theirFolders)
  const plan = await planApply({ base, ours, theirs }, contentsOf())
  assert.deepEqual(shown(plan.steps), ['b/f: x -> -', 'c/f: - -> x'])
  assert.deepEqual(plan.folders.steps.map(({ path }) => path), ['new', 'new/deep'])
  assert.deepEqual(plan.conflicts, [])
  assert.ok(plan.folders.kept.has('b'))
  assert.equal(plan.folders.known, null)
  const some = await planApply({ base, ours, theirs }, contentsOf(), { paths: ['new'] })
  assert.deepEqual([shown(some.steps), some.folders.steps.map(({ path }) => path)], [[], ['new']])
  const { folders: _, ...old } = base
  const none = await planApply({ base: old, ours, theirs }, contentsOf())
  assert.deepEqual([none.folders.steps, none.conflicts], [[], []])
})
