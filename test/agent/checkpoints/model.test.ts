import assert from 'node:assert/strict'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  FileStore, MemoryStore, RunEngine, type Clock, type JsonObject, type RunStore,
} from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import { follow, scratch, testProvider, type Said } from '../../helpers/engine.js'
import { mortalClock } from '../../helpers/mortal.js'
import { Random } from '../../helpers/random.js'
import {
  file, link, listing, put, randomModel, readModel, writeModel, type Model,
} from '../../helpers/tree-model.js'
import { wholeTree } from '../../helpers/whole-tree.js'
import {
  assertTree, callsFor, differing, edited, editsBetween, expectedApply, expectedRestore,
  NAMES, perform, visible, withPaths,
} from './model-world.js'
import { MortalProcess } from './mortal-process.js'

interface KnownCheckpoint {
  readonly id: string
  readonly ofOriginal: boolean
  readonly iteration: number
  readonly model: Model
}

/** What is expected of one run. */
interface KnownRun {
  readonly id: string
  readonly isolated: boolean
  /** Null: it works in the folder itself, or its copy is gone. */
  copy: Model | null
  /** Where its copy is. */
  copyOf: string
  readonly checkpoints: KnownCheckpoint[]
  start: Model
  newest: Model
  isLive: boolean
  isDiscarded: boolean
  /** The folder of each iteration's end. */
  readonly ends: Map<number, Model>
}

interface Plan {
  readonly seed: number
  readonly steps: number
  readonly kills: boolean
  readonly bigBytes: number
}

class World {
  readonly random: Random
  readonly #plan: Plan
  readonly #root: string
  readonly #cwd: string
  readonly #canary: string
  readonly #canaryBefore: Record<string, string>
  #folder: Model
  #disk: FileStore | MemoryStore
  #process!: MortalProcess
  readonly #dead: MortalProcess[] = []
  #engine!: RunEngine
  readonly #runs: KnownRun[] = []
  #answer: (isFirst: boolean) => Said = () => ({})
  #context = ''
  readonly counts: Record<string, number> = {}

  constructor(t: TestContext, plan: Plan, root = scratch(t)) {
    this.#plan = plan
    this.random = new Random(plan.seed)
    this.#root = root
    this.#cwd = join(root, 'work')
    this.#canary = join(root, 'canary')
    mkdirSync(join(root, 'payload'))
    const canary = randomModel(this.random, 12, NAMES)
    for (const name of NAMES) put(canary, name, file(`canary ${name}\n`))
    mkdirSync(this.#canary)
    writeModel(this.#canary, canary)
    this.#canaryBefore = wholeTree(this.#canary)
    const folder = randomModel(this.random, 7, NAMES)
    folder.set('.env', file('TOKEN=1\n'))
    folder.set('k.pem', file('key\n', 0o600))
    put(folder, 'node_modules/m/i.js', file('1\n'))
    put(folder, 'a/.env', file('TOKEN=2\n'))
    put(folder, 'out', link(this.#canary))
    mkdirSync(this.#cwd)
    writeModel(this.#cwd, folder)
    this.#folder = folder
    const inMemory = plan.seed % 2 === 0
    this.#disk = inMemory ? new MemoryStore() : new FileStore({ directory: join(root, 'data') })
  }

  async open(): Promise<void> {
    if (this.#process?.isDead === true) this.#dead.push(this.#process)
    this.#process = new MortalProcess(this.#disk as RunStore, () => this.random.chance(0.5))
    const provider = testProvider(({ messages }) => {
      const last = messages.at(-1)
      return this.#answer(last?.role !== 'tool')
    })
    const clock: Clock = mortalClock(this.#process.died)
    this.#engine = await RunEngine.open({
      store: this.#process.store,
      roots: [this.#cwd],
      providers: [provider],
      defaultModel: 'test:m',
      workspaceFolder: join(this.#root, 'copies'),
      clock,
    })
  }

  async close(): Promise<void> {
    if (!this.#process.isDead) await this.#engine.close()
    await this.#disk.close()
    for (const process of [...this.#dead, this.#process]) process.bury()
  }

  /** Another process of the same data. */
  async #restart(): Promise<void> {
    if (!this.#process.isDead) await this.#engine.close()
    if (this.#disk instanceof FileStore) {
      await this.#disk.close()
      this.#disk = new FileStore({ directory: join(this.#root, 'data') })
    }
    await this.open()
    for (const { id } of this.#runs) {
      while (((await this.#disk.head(id))?.operation ?? null) !== null) await nextTurn()
    }
  }

  async step(number: number): Promise<void> {
    const { random } = this
    const names = ['run', 'stranger', 'stranger', 'restore', 'restore', 'apply', 'apply', 'fork']
    const name = random.pick([...names, 'discard', 'restart', 'resume', 'resume'])
    this.#context = `seed ${this.#plan.seed}, step ${number}: ${name}`
    this.counts[name] = (this.counts[name] ?? 0) + 1
    if (this.#runs.length === 0 || name === 'run') await this.#run()
    else if (name === 'stranger') this.#stranger()
    else if (name === 'restart') await this.#restart()
    else if (name === 'resume') await this.#resume()
    else {
      const run = random.pick(this.#runs)
      if (name === 'restore') await this.#restore(run)
      else if (name === 'apply') await this.#apply(run)
      else if (name === 'fork') await this.#fork(run)
      else await this.#discard(run)
    }
    this.#compareDisk()
    // A run that has ended gives its folder back a moment after its last event.
    for (let turn = 0; turn < 100; turn++) await nextTurn()
  }

  #stranger(): void {
    const after = edited(this.random, this.#folder, this.#canary, this.#plan.bigBytes)
    const edits = editsBetween(this.random, this.#folder, after)
    perform(this.#cwd, edits, this.random.chance(0.5))
    this.#folder = after
  }

  get #gated(): KnownRun | undefined {
    return this.#runs.find(({ isLive }) => isLive)
  }

  /** Answers of the model that edit the folder of a run in each iteration. */
  #edits(run: { isolated: boolean; now: Model; ends: Map<number, Model>; states: Model[] },
    first: number, last: number): void {
    let iteration = first
    this.#answer = (isFirst) => {
      const now = run.isolated ? run.now : this.#folder
      if (isFirst) {
        const after = edited(this.random, now, this.#canary, this.#plan.bigBytes)
        const edits = editsBetween(this.random, now, after)
        if (run.isolated) run.now = after
        else this.#folder = after
        if (iteration === last) writeFileSync(join(this.#root, 'flag'), '')
        return { calls: callsFor(edits, join(this.#root, 'payload')) }
      }
      // The folder is changed by somebody else while the run works.
      if (this.random.chance(0.5)) this.#stranger()
      const end = visible(run.isolated ? run.now : this.#folder)
      run.ends.set(iteration, end)
      run.states.push(end)
      iteration += 1
      return {}
    }
  }

  async #run(): Promise<void> {
    const { random } = this
    const isolated = this.#gated !== undefined || random.chance(0.6)
    const isGated = this.#gated === undefined && random.chance(0.3)
    const iterations = random.integer(1, 3)
    const start = visible(this.#folder)
    const run = { isolated, now: this.#folder, ends: new Map<number, Model>(), states: [start] }
    const isAchieved = random.chance(0.8)
    this.#edits(run, 1, isAchieved && !isGated ? iterations : 0)
    rmSync(join(this.#root, 'flag'), { force: true })
    const { details } = await this.#engine.create({
      goal: `shell: test -e ${join(this.#root, 'flag')}`,
      cwd: this.#cwd,
      workspace: isolated ? 'isolated' : 'in_place',
      max_iterations: isGated ? 3 : iterations,
      hitl_enabled: isGated,
    })
    await this.#driven(details.run_id, run, start, isGated)
  }

  async #driven(
    id: string,
    run: { isolated: boolean; now: Model; ends: Map<number, Model>; states: Model[] },
    start: Model,
    isGated: boolean,
  ): Promise<void> {
    const events = await follow(this.#engine, id, ({ kind }) => kind === 'human_check_required')
    const failed = events.find(({ kind, payload }) =>
      (kind === 'tool_result' && (payload as { exit_code?: number }).exit_code !== 0) ||
      (kind === 'run_end' && (payload as { end_reason?: string }).end_reason === 'error'),
    )
    assert.equal(failed, undefined, `${this.#context}: ${JSON.stringify(failed)}`)
    const known: KnownRun = {
      id,
      isolated: run.isolated,
      copy: run.isolated ? run.now : null,
      copyOf: id,
      checkpoints: [],
      start,
      newest: run.states.at(-1)!,
      isLive: isGated && events.at(-1)?.kind === 'human_check_required',
      isDiscarded: false,
      ends: run.ends,
    }
    this.#runs.push(known)
    await this.#checkpoints(known, run.states, false)
  }

  async #resume(): Promise<void> {
    const run = this.#gated
    if (run === undefined) return
    const { iteration } = await this.#engine.get(run.id)
    const folder = run.isolated ? run.copy! : this.#folder
    const going = { isolated: run.isolated, now: folder, ends: run.ends, states: [] as Model[] }
    this.#edits(going, iteration + 1, 0)
    const after = (await this.#engine.events(run.id, { after: 0, limit: 10_000 })).at(-1)!.seq
    const decision = this.random.chance(0.7) ? 'approve' : 'abort'
    await this.#engine.resume(run.id, { decision })
    const events = await follow(
      this.#engine, run.id, ({ kind, seq }) => kind === 'human_check_required' && seq > after,
    )
    run.isLive = events.at(-1)?.kind === 'human_check_required'
    if (run.isolated) run.copy = going.now
    if (going.states.length > 0) run.newest = going.states.at(-1)!
    await this.#checkpoints(run, going.states, false)
  }

  /** New checkpoints have the contents of the candidates, the last one that of the last. */
  async #checkpoints(
    run: KnownRun,
    candidates: readonly Model[],
    ofOriginal: boolean,
  ): Promise<void> {
    const all = await this.#engine.workspaces.checkpoints(run.id)
    let at = 0
    for (const { checkpoint_id: id, reason, iteration } of all.slice(run.checkpoints.length)) {
      assert.equal(reason === 'apply', ofOriginal, this.#context)
      for (;; at++) {
        const model = candidates[at]
        if (model === undefined) {
          await assertTree(this.#engine, run.id, id, candidates.at(-1) ?? new Map(), this.#context)
        }
        assert.ok(model !== undefined, `${this.#context}: a checkpoint that nobody expects`)
        const isIt = await assertTree(this.#engine, run.id, id, model, this.#context).then(
          () => true,
          () => false,
        )
        if (!isIt) continue
        run.checkpoints.push({ id, ofOriginal, iteration, model })
        break
      }
    }
    const last = candidates.at(-1)
    const newest = run.checkpoints.findLast((one) => one.ofOriginal === ofOriginal)
    if (last === undefined) return
    assert.deepEqual(newest && listing(newest.model), listing(last), this.#context)
  }

  async #restore(run: KnownRun): Promise<void> {
    // Equal trees have equal ids: the newest checkpoint with the id counts.
    const { id: picked } = this.random.pick(run.checkpoints)
    const newestOf = (id: string): KnownCheckpoint =>
      run.checkpoints.findLast((one) => one.id === id)!
    const target = newestOf(picked)
    const force = this.random.chance(0.5)
    const inCopy = run.isolated && !target.ofOriginal
    const now = inCopy ? run.copy : this.#folder
    const request = { checkpoint_id: target.id, force }
    if (now === null) {
      const refused = this.#engine.workspaces.restore(run.id, request)
      return await assert.rejects(refused, { problem: 'not_kept' }, this.#context)
    }
    if (this.#isBusy(run, !inCopy)) return
    const { steps, done } = expectedRestore(now, target.model)
    const ofOriginal = run.isolated && !inCopy
    const known = run.checkpoints.findLast((one) => one.ofOriginal === ofOriginal)!.model
    this.#context += ` ${JSON.stringify({ inCopy, ofOriginal, force, steps: steps.length })}`
    const foreign = steps.filter((path) =>
      differing(new Map([...now].filter(([it]) => it === path)),
        new Map([...known].filter(([it]) => it === path))).length > 0,
    )
    if (!force && foreign.length > 0) {
      return await assert.rejects(
        this.#engine.workspaces.restore(run.id, request),
        { code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'changed', paths: foreign },
        this.#context,
      )
    }
    const after = withPaths(now, target.model, done)
    const result = await this.#mayDie(run.id, () =>
      this.#engine.workspaces.restore(run.id, request),
    )
    if (result === 'undone') return await this.#undone(run, now, ofOriginal)
    if (inCopy) run.copy = after
    else this.#folder = after
    if (!ofOriginal) run.newest = visible(after)
    if (result !== 'recovered') assert.deepEqual(result.paths, done, this.#context)
    this.#compareDisk()
    const before = visible(now)
    await this.#checkpoints(run, [before, visible(after)], ofOriginal)
    if (result === 'recovered') return
    assert.deepEqual(result.paths, done, this.#context)
    assert.equal(result.restored, target.id)
    const undo = run.checkpoints.findLast(({ id }) => id === result.checkpoint_id)
    assert.deepEqual(undo && listing(undo.model), listing(before), `${this.#context}: undo`)
    this.#compareDisk()
    // Undo, and undo of undo.
    for (const [to, from, wanted] of [
      [result.checkpoint_id, after, now],
      [target.id, now, after],
    ] as const) {
      if (this.random.chance(0.5) || newestOf(to).ofOriginal !== ofOriginal) return
      const again = await this.#engine.workspaces.restore(run.id, { checkpoint_id: to })
      assert.deepEqual(again.paths, done, this.#context)
      if (inCopy) run.copy = wanted
      else this.#folder = wanted
      if (!ofOriginal) run.newest = visible(wanted)
      await this.#checkpoints(run, [visible(from), visible(wanted)], ofOriginal)
      this.#compareDisk()
    }
  }

  /** Only a checkpoint may have been made when a process died. */
  async #undone(run: KnownRun, now: Model, ofOriginal: boolean): Promise<void> {
    const { length } = await this.#engine.workspaces.checkpoints(run.id)
    if (length > run.checkpoints.length) await this.#checkpoints(run, [visible(now)], ofOriginal)
  }

  /** A run that waits at a gate keeps others from its folder. */
  #isBusy(run: KnownRun, usesFolder: boolean): boolean {
    const gated = this.#gated
    return usesFolder && gated !== undefined && !gated.isolated && gated !== run
  }

  async #apply(run: KnownRun): Promise<void> {
    const { workspaces } = this.#engine
    if (!run.isolated || run.isDiscarded) {
      return await assert.rejects(workspaces.apply(run.id, {}), { problem: 'no_changes' })
    }
    if (run.isLive) return await assert.rejects(workspaces.apply(run.id, {}), { problem: 'live' })
    if (this.#isBusy(run, true)) return
    const { changes } = await workspaces.changes(run.id)
    const some = changes.filter(() => this.random.chance(0.5))
    const paths = some.length > 0 && this.random.chance(0.4) ? some.map(({ path }) => path) : null
    const renamed = some.flatMap(({ old_path }) => (old_path === null ? [] : [old_path]))
    const wanted = paths === null ? null : new Set([...paths, ...renamed])
    const force = this.random.chance(0.3)
    const { start, newest } = run
    const expected = expectedApply(start, newest, this.#folder, wanted, force)
    const request = { force, ...(paths !== null && { paths }) }
    const isWaited = (await this.#engine.get(run.id)).changes === 'pending'
    if (expected.applied.length + expected.conflicts.length === 0 && !isWaited) {
      const refused = workspaces.apply(run.id, request)
      return await assert.rejects(refused, { problem: 'no_changes' }, this.#context)
    }
    const seen = await workspaces.apply(run.id, { ...request, dry_run: true })
    const { applied, conflicts, merged } = expected
    assert.deepEqual(seen, { applied, merged, skipped: [], conflicts, checkpoint_id: null }, this.#context)
    this.#compareDisk()
    if (conflicts.length > 0 && !force) {
      return await assert.rejects(
        workspaces.apply(run.id, request),
        { code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'conflict', paths: conflicts },
        this.#context,
      )
    }
    const before = visible(this.#folder)
    const result = await this.#mayDie(run.id, () => workspaces.apply(run.id, request))
    if (result === 'undone') return await this.#undone(run, this.#folder, true)
    this.#folder = expected.after
    if (result !== 'recovered') assert.deepEqual(result.applied, applied, this.#context)
    this.counts['applied'] = (this.counts['applied'] ?? 0) + 1
    await this.#checkpoints(run, [before, visible(this.#folder)], true)
    const rest = expectedApply(start, newest, this.#folder, null, false)
    const isDone = rest.applied.length + rest.conflicts.length === 0
    const { changes: state } = await this.#engine.get(run.id)
    if (isDone) assert.equal(state, 'applied', this.#context)
    else assert.notEqual(state, 'applied', this.#context)
    if (isDone) this.#copyIsGone(run)
    if (isDone && result === 'recovered') await this.#isSwept(run)
    if (result === 'recovered') return
    assert.deepEqual(result.applied, applied, this.#context)
    assert.deepEqual(result.conflicts, conflicts, this.#context)
    assert.deepEqual(result.merged, merged, this.#context)
  }

  #copyIsGone(run: KnownRun): void {
    for (const other of this.#runs) if (other.copyOf === run.copyOf) other.copy = null
  }

  /** What a dead process left is removed by the next one, sooner or later. */
  async #isSwept({ copyOf }: KnownRun): Promise<void> {
    const copy = join(this.#root, 'copies', copyOf)
    while (existsSync(copy)) await nextTurn()
  }

  async #discard(run: KnownRun): Promise<void> {
    const { changes } = await this.#engine.get(run.id)
    const { workspaces } = this.#engine
    if (run.isLive && run.isolated) {
      return await assert.rejects(workspaces.discard(run.id), { problem: 'live' }, this.#context)
    }
    if (!run.isolated || run.isDiscarded || changes === 'applied') {
      const refused = workspaces.discard(run.id)
      return await assert.rejects(refused, { problem: 'no_changes' }, this.#context)
    }
    if (run.copyOf !== run.id) return
    await workspaces.discard(run.id)
    run.isDiscarded = true
    this.#copyIsGone(run)
  }

  async #fork(source: KnownRun): Promise<void> {
    const { random } = this
    const inPlace = random.chance(0.3)
    const iteration = random.integer(0, source.ends.size)
    const isStart = iteration === 0
    const { changes } = await this.#engine.get(source.id)
    const at: JsonObject[string] = isStart ? 'start' : { iteration }
    const files = isStart ? source.start : source.ends.get(iteration)!
    const request = {
      at, workspace: inPlace ? 'in_place' : 'isolated', max_iterations: 1, hitl_enabled: false,
      message: `go on after ${changes}`,
    }
    if (inPlace && source.isLive) {
      const refused = this.#engine.fork(source.id, request)
      return await assert.rejects(refused, { problem: 'live' }, this.#context)
    }
    if (inPlace && this.#gated !== undefined) return
    const now = visible(this.#folder)
    const foreign = differing(now, files)
    if (inPlace && foreign.length > 0) {
      return await assert.rejects(
        this.#engine.fork(source.id, request),
        { code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'changed', paths: foreign },
        this.#context,
      )
    }
    const { done } = expectedRestore(this.#folder, files)
    const begins = inPlace ? this.#folder : withPaths(this.#folder, files, done)
    const start = visible(begins)
    const run = {
      isolated: !inPlace, now: begins, ends: new Map<number, Model>(), states: [start],
    }
    this.#edits(run, 1, random.chance(0.7) ? 1 : 0)
    rmSync(join(this.#root, 'flag'), { force: true })
    const { details } = await this.#engine.fork(source.id, request)
    await this.#driven(details.run_id, run, start, false)
  }

  /** Does an operation in a process that may die at any call of its store. */
  async #mayDie<T>(runId: string, work: () => Promise<T>): Promise<T | 'undone' | 'recovered'> {
    if (!this.#plan.kills || this.random.chance(0.5)) return await work()
    const count = async (): Promise<number> =>
      (await this.#disk.read(runId, 0, 10_000)).filter(({ kind }) => kind === 'files_changing')
        .length
    const before = await count()
    this.#process.dieAfter(this.random.integer(1, 60))
    const result = await Promise.race([work(), this.#process.died.then(() => 'died' as const)])
    if (result !== 'died') {
      this.#process.live()
      return result
    }
    this.counts['killed'] = (this.counts['killed'] ?? 0) + 1
    await this.#restart()
    this.#context += ', killed'
    const isBegun = (await count()) > before
    if (isBegun) this.counts['recovered'] = (this.counts['recovered'] ?? 0) + 1
    return isBegun ? 'recovered' : 'undone'
  }

  #compareDisk(): void {
    assert.deepEqual(listing(readModel(this.#cwd)), listing(this.#folder), this.#context)
    assert.deepEqual(wholeTree(this.#canary), this.#canaryBefore, `${this.#context}: outside`)
    for (const { copy, copyOf, id } of this.#runs) {
      const folder = join(this.#root, 'copies', copyOf, 'work')
      if (copy === null) {
        assert.equal(existsSync(folder), false, `${this.#context}: copy of ${id}`)
      } else {
        assert.deepEqual(listing(readModel(folder)), listing(copy), `${this.#context}: copy`)
      }
    }
  }

  /** Every checkpoint still has the content that it had. */
  async end(): Promise<void> {
    this.#context += ', at the end'
    for (const run of this.#runs) {
      for (const { id, model } of run.checkpoints) {
        await assertTree(this.#engine, run.id, id, model, this.#context)
      }
    }
  }
}

async function play(t: TestContext, plan: Plan): Promise<Record<string, number>> {
  const world = new World(t, plan)
  await world.open()
  try {
    for (let step = 0; step < plan.steps; step++) await world.step(step)
    await world.end()
  } finally {
    await world.close()
  }
  return world.counts
}

test('folders, copies and checkpoints are what a model says', async (t) => {
  t.diagnostic(JSON.stringify(await play(t, { seed: 3, steps: 6, kills: true, bigBytes: 100 })))
})

const SEEDS = Number(process.env['RUNWRIGHT_MODEL_SEEDS'] ?? 6)

test('folders, copies and checkpoints are what a model says, in many random histories', async (t) => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const plan = { seed, steps: 40, kills: true, bigBytes: seed % 10 === 0 ? 20_000_000 : 5_000 }
    t.diagnostic(`${seed} ${JSON.stringify(await play(t, plan))}`)
  }
})
