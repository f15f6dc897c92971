import assert from 'node:assert/strict'
import type { JsonObject, WorkspaceChangedError } from 'runwright/agent'
import { ObjectUse } from '../../../lib/agent/checkpoints/object-use.js'
import { Reclaimer } from '../../../lib/agent/checkpoints/reclaim.js'
import { comparePaths } from '../../../lib/agent/workspace/net-changes.js'
import { readTree } from '../../../lib/agent/workspace/read-tree.js'
import { foldersOf, readModel, type Model } from '../../helpers/tree-model.js'
import type { Course, KnownCheckpoint, KnownRun, Place } from './model-known.js'
import { Runs } from './model-runs.js'
import {
  assertFolders, baseOf, differing, editsBetween, expectedApply, expectedRestore, perform,
  problemsOf, readCheckpoint, visible, withPaths,
} from './model-rules.js'

/** What is done with the files of runs: restores, applies, forks, and their end. */
export class Operations extends Runs {
  /**
   * What an operation came to that met a stranger: nothing is lost, and what it says is so.
   *
   * @param targets what it may have written
   */
  async #settle<T>(
    run: KnownRun,
    place: Place,
    { died, error, stranger }: Course<T>,
    targets: readonly Model[],
    paths: readonly string[] | null,
  ): Promise<void> {
    const known = run.checkpoints.length
    const before = place.now!
    const after = readModel(place.path)
    place.now = after
    const all = await this.engine.workspaces.checkpoints(run.id)
    for (const { checkpoint_id: id, reason, iteration } of all.slice(known)) {
      const model = await readCheckpoint(this.disk.objects, id)
      run.checkpoints.push({ id, ofOriginal: reason === 'apply', iteration, model })
    }
    const kept = run.checkpoints.slice(known).map(({ model }) => model)
    const meeting = { before, stranger: stranger!, after, targets, kept }
    const refused = error !== null && !died
    const problems = problemsOf(refused ? { ...meeting, kept: [], targets: [] } : meeting)
    assert.deepEqual(problems, [], this.context)
    for (const path of paths ?? []) {
      const isSo = stranger!.has(path) || targets.some((it) => same(it, after, path))
      assert.ok(isSo, `${this.context}: ${path} is said to be done`)
    }
  }

  async #operations(run: KnownRun): Promise<number> {
    const records = await this.disk.read(run.id, 0, 10_000)
    return records.filter(({ kind }) => kind === 'files_changing').length
  }

  /** @param meets a stranger gets at what is being changed */
  protected async restore(run: KnownRun, meets: boolean): Promise<void> {
    // Equal trees have equal ids: the newest checkpoint with the id counts.
    const { id: picked } = this.random.pick(run.checkpoints)
    const target = run.checkpoints.findLast(({ id }) => id === picked)!
    const force = meets || this.random.chance(0.5)
    const ofOriginal = run.isolated && target.ofOriginal
    const place = ofOriginal || !run.isolated ? this.original : this.copyOf(run)
    const request = { checkpoint_id: target.id, force }
    const { workspaces } = this.engine
    if (place === null) {
      const refused = workspaces.restore(run.id, request)
      return await assert.rejects(refused, { problem: 'not_kept' }, this.context)
    }
    if (place === this.original && this.isBusy(run)) return
    const now = place.now!
    const { steps, done, inTheWay } = expectedRestore(now, target.model)
    this.tell({ ofOriginal, isolated: run.isolated, force, steps: steps.length })
    const last = this.newest(run, ofOriginal)
    const foreign = steps.filter((path) => !same(now, last, path))
    const after = withPaths(now, target.model, done)
    const begun = await this.#operations(run)
    const course = await this.course(place, steps, meets, () =>
      this.engine.workspaces.restore(run.id, request),
    )
    const isFile = (path: string): boolean => now.has(path) || target.model.has(path)
    const paths = course.result?.paths.filter(isFile) ?? null
    if (course.stranger !== null)
      return await this.#settle(run, place, course, [target.model], paths)
    const both = [visible(now), visible(after)]
    const [own, states] = ofOriginal ? [[], both] : [both, []]
    if (!force && foreign.length > 0 && !course.died) {
      const { error } = course
      assert.deepEqual(
        [error?.code, (error as { paths?: unknown } | null)?.paths],
        ['ERR_AGENT_WORKSPACE_CHANGED', foreign], this.context,
      )
      return
    }
    if (inTheWay.length > 0) return await this.#refused(run, course, inTheWay)
    assert.equal(course.error, null, `${this.context}: ${String(course.error)}`)
    if (course.died && (await this.#operations(run)) === begun) {
      return await this.#undone(run, now, ofOriginal)
    }
    place.now = after
    if (course.died) this.count('recovered')
    else assert.deepEqual(paths, done, this.context)
    await this.compareDisk()
    await assertFolders(place.path, this.disk.objects, target.id, this.context)
    // What a checkpoint of the run has is not always stored again.
    if (steps.length === 0) return await this.#undone(run, now, ofOriginal)
    await this.checkpoints(run, own, states)
    if (course.result === null) return
    const { checkpoint_id } = course.result
    const undo = run.checkpoints.findLast(({ id }) => id === checkpoint_id)
    this.same(undo!.model, visible(now), 'undo')
    await this.#undo(run, place, { ofOriginal, now, after, done }, checkpoint_id, target)
  }

  /** Unstored files are in the way: nothing is changed. */
  async #refused<T>(
    run: KnownRun,
    { died, error }: Course<T>,
    inTheWay: readonly string[],
  ): Promise<void> {
    if (died) return await this.#undone(run, run.place.now!, false)
    const { code, problem, paths } = error as WorkspaceChangedError
    assert.deepEqual([code, problem], ['ERR_AGENT_WORKSPACE_CHANGED', 'in_the_way'], this.context)
    assert.deepEqual([...paths].sort(comparePaths), inTheWay, this.context)
    this.count('refused')
  }

  /** Undo, and undo of undo. */
  async #undo(
    run: KnownRun,
    place: Place,
    { ofOriginal, now, after, done }: {
      readonly ofOriginal: boolean; readonly now: Model; readonly after: Model
      readonly done: readonly string[]
    },
    undo: string,
    target: KnownCheckpoint,
  ): Promise<void> {
    for (const [to, from, wanted] of [[undo, after, now], [target.id, now, after]] as const) {
      const newest = run.checkpoints.findLast(({ id }) => id === to)!
      if (this.random.chance(0.5) || newest.ofOriginal !== ofOriginal) return
      const again = await this.engine.workspaces.restore(run.id, { checkpoint_id: to })
      const isFile = (path: string): boolean => from.has(path) || wanted.has(path)
      assert.deepEqual(again.paths.filter(isFile), done, this.context)
      await assertFolders(place.path, this.disk.objects, to, this.context)
      place.now = wanted
      const states = [visible(from), visible(wanted)]
      await this.checkpoints(run, ofOriginal ? [] : states, ofOriginal ? states : [])
      await this.compareDisk()
    }
  }

  /** Only a checkpoint may have been made when a process died. */
  async #undone(run: KnownRun, now: Model, ofOriginal: boolean): Promise<void> {
    const { length } = await this.engine.workspaces.checkpoints(run.id)
    if (length === run.checkpoints.length) return
    const states = [visible(now)]
    await this.checkpoints(run, ofOriginal ? [] : states, ofOriginal ? states : [])
  }

  protected async apply(run: KnownRun): Promise<void> {
    const { workspaces } = this.engine
    if (!run.isolated || run.isDiscarded)
      return await assert.rejects(workspaces.apply(run.id, {}), { problem: 'no_changes' })
    if (run.isLive) return await assert.rejects(workspaces.apply(run.id, {}), { problem: 'live' })
    if (this.isBusy()) return
    const { changes } = await workspaces.changes(run.id)
    const files = changes.filter(({ mode }) => !/^04/.test(mode.before ?? mode.after!))
    const some = files.filter(() => this.random.chance(0.5))
    const paths =
      some.length > 0 && this.random.chance(0.4) ? some.map(({ path }) => path) : null
    const renamed = some.flatMap(({ old_path }) => (old_path === null ? [] : [old_path]))
    const wanted = paths === null ? null : new Set([...paths, ...renamed])
    const force = this.random.chance(0.3)
    const newest = this.newest(run, false)
    const now = this.folder
    const base = baseOf(run, now)
    const expected = expectedApply(base, newest, now, wanted, force)
    const { conflicts, merged, after, inTheWay } = expected
    const made = await this.#emptyFolders(run, wanted, after)
    const applied = [...expected.applied, ...made].sort(comparePaths)
    const request = { force, ...(paths !== null && { paths }) }
    const told = { some: paths !== null, applied: applied.length, conflicts: conflicts.length }
    this.tell({ force, ...told })
    const isWaited = (await this.engine.get(run.id)).changes === 'pending'
    if (applied.length + conflicts.length === 0 && !isWaited) {
      const refused = workspaces.apply(run.id, request)
      return await assert.rejects(refused, { problem: 'no_changes' }, this.context)
    }
    if (inTheWay.length > 0) {
      const refusal = { problem: 'in_the_way', paths: inTheWay }
      for (const dry_run of [true, false]) {
        await assert.rejects(workspaces.apply(run.id, { ...request, dry_run }), refusal)
      }
      await this.compareDisk()
      return this.count('refused')
    }
    const seen = await workspaces.apply(run.id, { ...request, dry_run: true })
    assert.deepEqual(
      seen,
      { applied, merged, skipped: [], conflicts, held_back: [], checkpoint_id: null },
      this.context,
    )
    await this.compareDisk()
    const begun = await this.#operations(run)
    const course = await this.course(this.original, applied, false, () =>
      this.engine.workspaces.apply(run.id, request),
    )
    if (course.stranger !== null) {
      const done = course.result?.applied ?? null
      await this.#settle(run, this.original, course, [newest, after], done)
    } else if (conflicts.length > 0 && !force && !course.died) {
      const { error } = course
      assert.deepEqual(
        [error?.code, (error as { paths?: unknown } | null)?.paths],
        ['ERR_AGENT_WORKSPACE_CHANGED', conflicts], this.context,
      )
      return
    } else {
      assert.equal(course.error, null, `${this.context}: ${String(course.error)}`)
      const isUndone = course.died && (await this.#operations(run)) === begun
      if (isUndone) return await this.#undone(run, now, true)
      this.original.now = after
      this.count('applied')
      await this.checkpoints(run, [], [visible(now), visible(after)])
      if (course.result !== null) {
        const { checkpoint_id: _, ...said } = course.result
        const expected = { applied, merged, conflicts, skipped: [], held_back: [] }
        assert.deepEqual(said, expected, this.context)
      }
    }
    const begunNow = (await this.#operations(run)) > begun
    const theirs = this.newest(run, true)
    const rest = expectedApply(baseOf(run, theirs), newest, theirs, null, false)
    const folders = await this.#emptyFolders(run, null, theirs)
    const left = rest.applied.length + rest.conflicts.length + folders.length
    const isDone = begunNow && left === 0
    const state = (await this.engine.get(run.id)).changes
    if (begunNow) assert.equal(state === 'applied', isDone, this.context)
    if (state === 'applied') await this.copyGoes(run)
  }

  /** Empty folders that an apply brings: a stranger may have left some in a copy. */
  async #emptyFolders(
    { id, checkpoints }: KnownRun,
    wanted: Set<string> | null,
    after: Model,
  ): Promise<readonly string[]> {
    const own = checkpoints.filter(({ ofOriginal }) => !ofOriginal)
    const [first] = await this.disk.read(id, 0, 1)
    const fork = first?.kind === 'run_created' ? first.private?.fork : undefined
    const [began, ours] = await Promise.all(
      [fork?.applies_from ?? own[0]!.id, own.at(-1)!.id].map(async (checkpoint) =>
        [...(await readTree(this.disk.objects, checkpoint)).folders!.keys()]),
    )
    const known = new Set([...began!, ...foldersOf(this.original.path)])
    const files = [...own.at(-1)!.model.keys()]
    return ours!.filter((path) => {
      const isKnown = known.has(path) || files.some((it) => it.startsWith(`${path}/`))
      const isBlocked = [...after.keys()].some((it) => it === path || path.startsWith(`${it}/`))
      return !isKnown && !isBlocked && wanted?.has(path) !== false
    })
  }

  protected async discard(run: KnownRun): Promise<void> {
    const { changes } = await this.engine.get(run.id)
    const discard = (): Promise<void> => this.engine.workspaces.discard(run.id)
    if (run.isLive && run.isolated)
      return await assert.rejects(discard(), { problem: 'live' }, this.context)
    if (!run.isolated || run.isDiscarded || changes === 'applied')
      return await assert.rejects(discard(), { problem: 'no_changes' }, this.context)
    await this.perhapsDying(discard)
    const { changes: state } = await this.engine.get(run.id)
    if (state !== 'discarded') return
    run.isDiscarded = true
    await this.copyGoes(run)
  }

  protected async delete(run: KnownRun): Promise<void> {
    if (run.isLive) {
      const refused = this.engine.delete(run.id)
      return await assert.rejects(refused, { problem: 'live' }, this.context)
    }
    await this.perhapsDying(() => this.engine.delete(run.id))
    if ((await this.disk.head(run.id)) !== null) return
    this.runs.splice(this.runs.indexOf(run), 1)
    if (run.isolated) await this.copyGoes(run)
    const use = new ObjectUse(this.disk.objects, false)
    const parts = { store: this.disk, use, onProblem: assert.ifError }
    const { removed } = await new Reclaimer(parts).sweep()
    this.counts['reclaimed'] = (this.counts['reclaimed'] ?? 0) + removed
    await this.everyCheckpoint()
  }

  protected async fork(source: KnownRun): Promise<void> {
    const random = this.random
    const inPlace = random.chance(0.3)
    const { changes, iteration: last } = await this.engine.get(source.id)
    const isEnd = !source.isLive && random.chance(0.4)
    const iteration = random.integer(0, Math.min(last, source.ends.size))
    const at: JsonObject[string] = isEnd ? 'end' : iteration === 0 ? 'start' : { iteration }
    const files = isEnd
      ? this.newest(source, false)
      : iteration === 0 ? source.start : source.ends.get(iteration)
    if (files === undefined) return
    const request = {
      at, workspace: inPlace ? 'in_place' : 'isolated', max_iterations: 1, hitl_enabled: false,
      message: `go on after ${changes}`,
    }
    this.tell({ at, inPlace, of: source.isolated })
    if (inPlace && source.isLive) {
      const refused = this.engine.fork(source.id, request)
      return await assert.rejects(refused, { problem: 'live' }, this.context)
    }
    const applies = source.applies && !inPlace
    if ((inPlace && this.gated !== undefined) || (applies && this.isBusy())) return
    const { done } = expectedRestore(this.folder, files)
    if (inPlace && random.chance(0.6)) {
      // Somebody gives the folder what it had.
      const back = withPaths(this.folder, files, done)
      perform(this.original.path, editsBetween(random, this.folder, back), false)
      this.original.now = back
    }
    const foreign = differing(visible(this.folder), files)
    if (inPlace && foreign.length > 0) {
      return await assert.rejects(
        this.engine.fork(source.id, request),
        { code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'changed', paths: foreign },
        this.context,
      )
    }
    const adopted = isEnd && changes === 'pending' && !inPlace ? this.copyOf(source) : null
    const from = adopted !== null && source.isolated ? adopted.now! : this.folder
    const begins = inPlace ? from : withPaths(from, files, expectedRestore(from, files).done)
    const takesOver = source.isolated && !inPlace && changes !== 'applied'
    const began = takesOver ? source.began : visible(begins)
    const work = this.newWork(!inPlace, applies, begins, random.chance(0.7) ? 1 : 0, began)
    if (takesOver) this.count('took over')
    if (inPlace) this.count('forked in place')
    if (adopted !== null) this.count('adopted')
    await this.drive(work, () => this.engine.fork(source.id, request))
  }

  /** Net changes between any two checkpoints are what a comparison of their files says. */
  protected async look(run: KnownRun): Promise<void> {
    const [from, to] = [this.random.pick(run.checkpoints), this.random.pick(run.checkpoints)]
    const range = { from: from.id, to: to.id }
    const { changes: all } = await this.engine.workspaces.changes(run.id, range)
    const changes = all.filter(({ mode }) => !/^04/.test(mode.before ?? mode.after!))
    const told = changes.flatMap(({ path, old_path: old }) => (old === null ? [path] : [path, old]))
    assert.deepEqual(told.sort(comparePaths), differing(from.model, to.model), this.context)
    for (const { path, old_path: old, status } of changes) {
      const [before, after] = [from.model.get(old ?? path), to.model.get(path)]
      const wanted = before === undefined ? 'added' : after === undefined ? 'deleted' : 'modified'
      assert.equal(status, old === null ? wanted : 'renamed', this.context)
      if (old !== null) assert.deepEqual(before?.content, after?.content, this.context)
    }
  }

  /** Every checkpoint still has the content that it had. */
  protected async everyCheckpoint(): Promise<void> {
    for (const run of this.runs) {
      for (const { id, model } of run.checkpoints) {
        this.same(await readCheckpoint(this.disk.objects, id), model, `checkpoint ${id}`)
      }
    }
  }
}

function same(a: Model, b: Model, path: string): boolean {
  const only = (model: Model): Model =>
    new Map([...model].filter(([other]) => other === path))
  return differing(only(a), only(b)).length === 0
}
