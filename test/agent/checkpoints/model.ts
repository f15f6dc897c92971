/** Runs, their folders and a stranger, beside a model in memory of what all of them have. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import {
  AgentError, FileStore, MemoryStore, RunEngine, type AgentEvent, type Executor, type JsonObject,
  type Message, type RunDetails, type RunStore, type Tool,
} from 'runwright/agent'
import { ObjectUse } from '../../../lib/agent/checkpoints/object-use.js'
import { Reclaimer } from '../../../lib/agent/checkpoints/reclaim.js'
import { comparePaths } from '../../../lib/agent/workspace/net-changes.js'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import { follow, testProvider, type Said } from '../../helpers/engine.js'
import { mortalClock } from '../../helpers/mortal.js'
import { Random } from '../../helpers/random.js'
import {
  file, link, listing, put, randomModel, readModel, writeModel, type Model, type ModelFile,
} from '../../helpers/tree-model.js'
import { wholeTree } from '../../helpers/whole-tree.js'
import {
  differing, edited, editsBetween, expectedApply, expectedRestore, NAMES, perform, problemsOf,
  readCheckpoint, visible, withPaths,
} from './model-world.js'
import { MortalProcess } from './mortal-process.js'

/** A folder and what it has; a copy belongs to one run, and may be gone. */
interface Place {
  readonly path: string
  owner: string
  now: Model | null
}

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
  readonly applies: boolean
  /** Where it works: the folder itself, or a copy. */
  readonly place: Place
  readonly checkpoints: KnownCheckpoint[]
  readonly start: Model
  isLive: boolean
  isDiscarded: boolean
  /** The folder of each iteration's end. */
  readonly ends: Map<number, Model>
}

/** A run that works now. */
interface Work {
  readonly isolated: boolean
  readonly applies: boolean
  /** What its folder has when it begins. */
  readonly begins: Model
  /** The iteration after which its goal is achieved. */
  readonly last: number
  place: Place | null
  isMet: boolean
  readonly ends: Map<number, Model>
  /** What its checkpoints may have, in this order. */
  readonly states: Model[]
}

interface Sent {
  readonly runId: string
  readonly text: string
  /** The sender was told that it is stored. */
  isStored: boolean
}

/** What happened while an operation was under way. */
interface Course<T> {
  readonly result: T | null
  readonly error: AgentError | null
  readonly died: boolean
  readonly stranger: Map<string, ModelFile | undefined> | null
}

export interface Plan {
  readonly seed: number
  /** The steps that are done, by their numbers. */
  readonly steps: readonly number[]
  readonly bigBytes: number
}

type Action = () => Promise<void>

const GATE = ({ kind }: { readonly kind: string }): boolean => kind === 'human_check_required'

export class World {
  #random: Random
  readonly #plan: Plan
  readonly #root: string
  readonly #canary: string
  readonly #canaryBefore: Record<string, string>
  readonly #original: Place
  #disk: FileStore | MemoryStore
  #process!: MortalProcess
  readonly #dead: MortalProcess[] = []
  #engine!: RunEngine
  readonly #runs: KnownRun[] = []
  readonly #places = new Map<string, Place>()
  readonly #sent: Sent[] = []
  #work: Work | null = null
  #context = ''
  #failure: Error | null = null
  readonly counts: Record<string, number> = {}
  /** What was done, for people. */
  readonly script: string[] = []

  constructor(plan: Plan, root: string) {
    this.#plan = plan
    this.#random = new Random(plan.seed)
    this.#root = root
    this.#canary = join(root, 'canary')
    const canary = randomModel(this.#random, 12, NAMES)
    for (const name of NAMES) put(canary, name, file(`canary ${name}\n`))
    mkdirSync(this.#canary)
    writeModel(this.#canary, canary)
    this.#canaryBefore = wholeTree(this.#canary)
    const folder = randomModel(this.#random, 7, NAMES)
    folder.set('.env', file('TOKEN=1\n'))
    folder.set('k.pem', file('key\n', 0o600))
    put(folder, 'node_modules/m/i.js', file('1\n'))
    put(folder, 'a/.env', file('TOKEN=2\n'))
    put(folder, 'out', link(this.#canary))
    this.#original = { path: join(root, 'work'), owner: '', now: folder }
    mkdirSync(this.#original.path)
    writeModel(this.#original.path, folder)
    this.#disk = plan.seed % 2 === 0 ? new MemoryStore() : this.#openDisk()
  }

  #openDisk(): FileStore {
    return new FileStore({ directory: join(this.#root, 'data') })
  }

  get #folder(): Model {
    return this.#original.now!
  }

  #count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  async open(): Promise<void> {
    if (this.#process?.isDead === true) this.#dead.push(this.#process)
    const process = new MortalProcess(this.#disk as RunStore, () => this.#random.chance(0.5))
    this.#process = process
    const provider = testProvider(async ({ messages }) => {
      const said = await this.#noting(() => this.#answer(messages))
      return process.isDead ? await process.nothing : said
    })
    const store = process.store
    const engine = await process.inside(RunEngine).open({
      store,
      roots: [this.#original.path],
      providers: [provider],
      defaultModel: 'test:m',
      tools: [this.#tool(process)],
      executor: this.#executor(),
      workspaceFolder: join(this.#root, 'copies'),
      clock: mortalClock(process.died),
    })
    this.#engine = process.inside(engine)
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
      this.#disk = this.#openDisk()
    }
    await this.open()
    for (const { id } of this.#runs) {
      while (((await this.#disk.head(id))?.operation ?? null) !== null) await nextTurn()
    }
  }

  async step(number: number): Promise<void> {
    // Of its own, so that steps can be left out and the others stay what they are.
    const random = new Random((this.#plan.seed * 1_000 + number) * 0x9e3779b1)
    for (let i = 0; i < 8; i++) random.next()
    this.#random = random
    const picked = (): KnownRun => random.pick(this.#runs)
    const actions: Readonly<Record<string, readonly [weight: number, Action]>> = {
      run: [2, () => this.#run()],
      stranger: [2, () => Promise.resolve(this.#stranger())],
      restore: [4, () => this.#restore(picked())],
      apply: [4, () => this.#apply(picked())],
      fork: [3, () => this.#fork(picked())],
      discard: [1, () => this.#discard(picked())],
      delete: [1, () => this.#delete(picked())],
      message: [1, () => this.#message(picked())],
      look: [1, () => this.#look(picked())],
      resume: [2, () => this.#resume()],
      restart: [1, () => this.#restart()],
    }
    const names = Object.entries(actions).flatMap(([name, [weight]]) =>
      Array<string>(weight).fill(name),
    )
    const wanted = random.pick(names)
    const name = this.#runs.length === 0 && wanted !== 'stranger' ? 'run' : wanted
    this.#context = `seed ${this.#plan.seed}, step ${number}: ${name}`
    this.#count(name)
    try {
      await actions[name]![1]()
      await this.#compareDisk()
    } finally {
      this.script.push(this.#context)
    }
  }

  #tell(facts: object): void {
    this.#context += ` ${JSON.stringify(facts)}`
  }

  // What runs do.

  /** Runs go on whatever their tools and models throw. */
  async #noting<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.#failure ??= error as Error
      throw error
    }
  }

  /** The model's answer: edits first, and nothing more in the same iteration. */
  async #answer(messages: readonly Message[]): Promise<Said> {
    const running = (await this.#disk.list({ status: ['running'], limit: 1 })).heads[0]?.details
    const work = this.#work
    if (running === undefined || work === null) return {}
    const all = JSON.stringify(messages)
    for (const { runId, text, isStored } of this.#sent) {
      const times = all.split(text).length - 1
      const isOwn = runId === running.run_id
      const isWrong = times > 1 || (isOwn && isStored && times === 0)
      assert.ok(!isWrong, `${this.#context}: ${text} was heard ${times} times`)
    }
    if (messages.at(-1)?.role !== 'tool') return { calls: [{ tool: 'edit', args: {} }] }
    // The folder is changed by somebody else while the run works.
    if (this.#random.chance(0.3)) this.#stranger()
    const end = visible(work.isolated ? (work.place?.now ?? work.begins) : this.#folder)
    work.ends.set(running.iteration, end)
    work.states.push(end)
    return {}
  }

  #tool(process: MortalProcess): Tool {
    return {
      name: 'edit',
      description: 'Edits files at random.',
      parameters: { type: 'object' },
      effect: 'unsafe',
      execute: async (_, { runId, workspace }) => {
        const head = await this.#disk.head(runId)
        if (process.isDead) return await process.nothing
        const work = this.#work!
        const place = await this.#noting(() => this.#placeOf(work, runId, workspace.root))
        this.#edit(place, false)
        if (head?.details.iteration === work.last) work.isMet = true
        if (this.#random.chance(0.15)) await this.#send(runId)
        return { output: 'done', exitCode: 0 }
      },
    }
  }

  #executor(): Executor {
    const result = { output: '', truncated: false, timedOut: false, durationMs: 1 }
    return {
      name: 'model',
      run: () => Promise.resolve({ ...result, exitCode: this.#work?.isMet === true ? 0 : 1 }),
      killMarked: () => Promise.resolve(0),
    }
  }

  /** Where the run works; a copy must have what it shall have when it is first used. */
  #placeOf(work: Work, runId: string, path: string): Place {
    if (work.place !== null) return work.place
    const place = work.isolated
      ? (this.#places.get(path) ?? { path, owner: runId, now: null })
      : this.#original
    assert.equal(place.path, path, this.#context)
    this.#same(readModel(path), work.begins, 'the folder when the run begins')
    place.now = work.begins
    if (work.isolated) {
      place.owner = runId
      this.#places.set(path, place)
    }
    work.place = place
    return place
  }

  // What a stranger does.

  #edit(place: Place, sly: boolean): void {
    const after = edited(this.#random, place.now!, this.#canary, this.#plan.bigBytes)
    perform(place.path, editsBetween(this.#random, place.now!, after), sly)
    place.now = after
  }

  #stranger(): void {
    this.#edit(this.#original, this.#random.chance(0.5))
  }

  /** Edits a folder while somebody else changes it; notes what came of which path. */
  #meet(place: Place, changed: Map<string, ModelFile | undefined>): void {
    this.#count('met')
    const isOwn = (path: string): boolean => !/\.runwright-\w+\.tmp/.test(path)
    const now = new Map([...readModel(place.path)].filter(([path]) => isOwn(path)))
    const after = edited(this.#random, now, this.#canary, this.#plan.bigBytes)
    const edits = editsBetween(this.#random, now, after)
    perform(place.path, edits, false)
    for (const path of differing(now, after)) changed.set(path, after.get(path))
  }

  async #send(runId: string): Promise<void> {
    const message: Sent = { runId, text: `<message ${this.#sent.length}>`, isStored: false }
    this.#sent.push(message)
    this.#count('sent')
    const deliver = this.#random.pick(['next_turn', 'next_turn', 'next_iteration'])
    await this.#engine.message(runId, { text: message.text, deliver })
    message.isStored = deliver === 'next_turn'
  }

  async #message(run: KnownRun): Promise<void> {
    if (run.isLive) return void (await this.#perhapsDying(() => this.#send(run.id)))
    const refused = this.#engine.message(run.id, { text: 'too late' })
    await assert.rejects(refused, { problem: 'ended' }, this.#context)
  }

  // Processes that die.

  /** Does something in a process that may die at any of its calls. */
  async #perhapsDying<T>(
    work: () => Promise<T>,
    meanwhile: () => void = () => undefined,
  ): Promise<{ readonly result: T } | null> {
    if (this.#random.chance(0.4)) {
      const most = this.#random.pick([10, 40, 150])
      this.#process.dieAfter(this.#random.integer(1, most))
    }
    const done = work().then((result) => ({ result }))
    const course = await Promise.race([done, this.#process.died.then(() => null)])
    this.#process.live()
    if (course !== null && !this.#process.isDead) return course
    done.catch(() => undefined)
    if (!this.#process.isDead) return course
    await this.#process.died
    this.#count('killed')
    this.#context += ', killed'
    meanwhile()
    await this.#restart()
    return null
  }

  /** Changes a folder, perhaps beside a stranger, in a process that may die. */
  async #course<T>(place: Place, work: () => Promise<T>): Promise<Course<T>> {
    const changed = new Map<string, ModelFile | undefined>()
    const meets = this.#random.chance(0.35)
    const atEnd = meets && this.#random.chance(0.3)
    const most = this.#random.pick([20, 60, 150])
    if (meets && !atEnd) {
      this.#process.meet(this.#random.integer(1, most), () => this.#meet(place, changed))
    }
    const meanwhile = (): void => (atEnd ? this.#meet(place, changed) : undefined)
    let error: AgentError | null = null
    const attempt = async (): Promise<T | null> => {
      try {
        return await work()
      } catch (cause) {
        if (!(cause instanceof AgentError)) throw cause
        error = cause
        return null
      }
    }
    const course = await this.#perhapsDying(attempt, meanwhile)
    const stranger = changed.size > 0 ? changed : null
    if (stranger !== null) this.#tell({ stranger: [...stranger.keys()] })
    return { result: course?.result ?? null, error, died: course === null, stranger }
  }

  // Runs.

  get #gated(): KnownRun | undefined {
    return this.#runs.find(({ isLive }) => isLive)
  }

  /** A run that waits at a gate keeps others from its folder. */
  #isBusy(except?: KnownRun): boolean {
    const gated = this.#gated
    return gated !== undefined && !gated.isolated && gated !== except
  }

  async #run(): Promise<void> {
    const random = this.#random
    const isolated = this.#gated !== undefined || random.chance(0.6)
    const isGated = this.#gated === undefined && random.chance(0.3)
    const iterations = random.integer(1, 3)
    const applies = isolated && !this.#isBusy() && random.chance(0.4)
    const isAchieved = random.chance(0.8) && !isGated
    const begins = this.#folder
    const work = this.#newWork(isolated, applies, begins, isAchieved ? iterations : 0)
    this.#tell({ isolated, isGated, applies, iterations })
    await this.#drive(work, () =>
      this.#engine.create({
        goal: 'shell: check',
        cwd: this.#original.path,
        workspace: isolated ? 'isolated' : 'in_place',
        max_iterations: isGated ? 3 : iterations,
        hitl_enabled: isGated,
        ...(applies && { apply: 'on_achieved' }),
      }),
    )
  }

  #newWork(isolated: boolean, applies: boolean, begins: Model, last: number): Work {
    const states = [visible(begins)]
    return { isolated, applies, begins, last, place: null, isMet: false, ends: new Map(), states }
  }

  /** Starts a run and follows it to its end or gate, whichever process drives it. */
  async #drive(
    work: Work,
    begin: () => Promise<{ readonly details: RunDetails }>,
  ): Promise<void> {
    const before = new Set(this.#runs.map(({ id }) => id))
    this.#work = work
    const course = await this.#perhapsDying(async () => {
      const { details } = await begin()
      return await follow(this.#engine, details.run_id, GATE)
    })
    const { runs } = await this.#engine.list()
    const added = runs.find(({ run_id }) => !before.has(run_id))
    if (added === undefined) return assert.equal(course, null, this.#context)
    const id = added.run_id
    const events = course?.result ?? (await follow(this.#engine, id, GATE))
    this.#assertNoFailure(events)
    // A call that was cut off is not repeated: the run may have changed nothing.
    if (work.place === null) {
      assert.equal(course, null, `${this.#context}: ${id} did nothing`)
      const copy = join(realpathSync(join(this.#root, 'copies', id)), 'work')
      this.#placeOf(work, id, work.isolated ? copy : this.#original.path)
    }
    const run: KnownRun = {
      id,
      isolated: work.isolated,
      applies: work.applies,
      place: work.place!,
      checkpoints: [],
      start: visible(work.begins),
      isLive: GATE(events.at(-1)!),
      isDiscarded: false,
      ends: work.ends,
    }
    this.#runs.push(run)
    await this.#afterWork(run, work)
  }

  #assertNoFailure(events: readonly AgentEvent[]): void {
    assert.ifError(this.#failure)
    const failed = events.find(({ kind, payload }) =>
      (kind === 'log' && /checkpoint was made/.test((payload as { message: string }).message)) ||
      (kind === 'run_end' && (payload as { end_reason?: string }).end_reason === 'error'),
    )
    assert.equal(failed, undefined, `${this.#context}: ${JSON.stringify(failed)}`)
  }

  /** What must hold when a run has ended or waits at a gate. */
  async #afterWork(run: KnownRun, work: Work): Promise<void> {
    this.#work = null
    const { status, changes } = await this.#engine.get(run.id)
    const originals: Model[] = []
    const newest = work.states.at(-1) ?? this.#newest(run, false)
    let isApplied = false
    if (run.applies && status === 'achieved') {
      const plan = expectedApply(run.start, newest, this.#folder, null, false)
      if (plan.conflicts.length === 0 && plan.applied.length > 0) {
        this.#count('applied itself')
        originals.push(visible(this.#folder), visible(plan.after))
        this.#original.now = plan.after
        const rest = expectedApply(run.start, newest, plan.after, null, false)
        isApplied = rest.applied.length + rest.conflicts.length === 0
      }
    }
    const isPending =
      run.isolated && status === 'achieved' && differing(run.start, newest).length > 0
    assert.equal(changes, isApplied ? 'applied' : isPending ? 'pending' : null, this.#context)
    await this.#checkpoints(run, work.states, originals)
    if (isApplied) await this.#copyGoes(run)
    await this.#messagesAreStored(run)
  }

  async #messagesAreStored({ id }: KnownRun): Promise<void> {
    const events = await this.#engine.events(id, { after: 0, limit: 10_000 })
    const texts = events.flatMap(({ kind, payload }) =>
      kind === 'user_message' ? [(payload as { readonly text: string }).text] : [],
    )
    for (const { runId, text, isStored } of this.#sent) {
      if (runId !== id) continue
      const times = texts.filter((it) => it === text).length
      const isRight = times === 1 || (times === 0 && !isStored)
      assert.ok(isRight, `${this.#context}: ${text} is there ${times} times`)
    }
  }

  async #resume(): Promise<void> {
    const run = this.#gated
    if (run === undefined) return
    const place = run.place
    const work: Work = {
      ...this.#newWork(run.isolated, run.applies, place.now!, 0),
      place, ends: run.ends, states: [],
    }
    this.#work = work
    const { gate, last_seq } = await this.#engine.get(run.id)
    const decision = this.#random.chance(0.7) ? 'approve' : 'abort'
    const next = (event: AgentEvent): boolean => GATE(event) && event.seq > last_seq
    const course = await this.#perhapsDying(async () => {
      await this.#engine.resume(run.id, { decision })
      return await follow(this.#engine, run.id, next)
    })
    const now = await this.#engine.get(run.id)
    if (course === null && now.gate?.gate_id === gate?.gate_id) return
    const events = course?.result ?? (await follow(this.#engine, run.id, next))
    this.#assertNoFailure(events)
    run.isLive = GATE(events.at(-1)!)
    await this.#afterWork(run, work)
  }

  // Checkpoints.

  /**
   * New checkpoints have what the folder and the original had, in this order, and the last ones
   * have what these had last.
   */
  async #checkpoints(
    run: KnownRun,
    own: readonly Model[],
    original: readonly Model[],
  ): Promise<void> {
    const all = await this.#engine.workspaces.checkpoints(run.id)
    const at = { own: 0, original: 0 }
    for (const { checkpoint_id: id, reason, iteration } of all.slice(run.checkpoints.length)) {
      const model = await readCheckpoint(this.#disk.objects, id)
      const ofOriginal = reason === 'apply'
      const whose = ofOriginal ? 'original' : 'own'
      const candidates = ofOriginal ? original : own
      const lines = JSON.stringify(listing(model))
      const from = at[whose]
      const index = candidates.findIndex(
        (one, i) => i >= from && JSON.stringify(listing(one)) === lines,
      )
      if (index < 0) this.#same(model, candidates.at(-1) ?? new Map(), `checkpoint ${id}`)
      assert.ok(index >= 0, `${this.#context}: a checkpoint of what was over`)
      at[whose] = index
      run.checkpoints.push({ id, ofOriginal, iteration, model })
    }
    for (const [ofOriginal, last] of [[false, own.at(-1)], [true, original.at(-1)]] as const) {
      if (last === undefined) continue
      this.#same(this.#newest(run, ofOriginal), last, 'the newest checkpoint')
    }
  }

  #newest(run: KnownRun, ofOriginal: boolean): Model {
    return run.checkpoints.findLast((one) => one.ofOriginal === ofOriginal)?.model ?? run.start
  }

  #same(found: Model, wanted: Model, what: string): void {
    assert.deepEqual(listing(found), listing(wanted), `${this.#context}: ${what}`)
  }

  /** The copy in which a run works; null when it is gone, or another run's. */
  #copyOf(run: KnownRun): Place | null {
    return run.place.owner === run.id && run.place.now !== null ? run.place : null
  }

  async #copyGoes(run: KnownRun): Promise<void> {
    const copy = run.isolated ? this.#copyOf(run) : null
    if (copy === null) return
    copy.now = null
    // What a dead process left is removed by the next one, sooner or later.
    while (existsSync(copy.path)) await nextTurn()
  }

  // Operations.

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
    const all = await this.#engine.workspaces.checkpoints(run.id)
    for (const { checkpoint_id: id, reason, iteration } of all.slice(known)) {
      const model = await readCheckpoint(this.#disk.objects, id)
      run.checkpoints.push({ id, ofOriginal: reason === 'apply', iteration, model })
    }
    const kept = run.checkpoints.slice(known).map(({ model }) => model)
    const meeting = { before, stranger: stranger!, after, targets, kept }
    const refused = error !== null && !died
    const problems = problemsOf(refused ? { ...meeting, kept: [], targets: [] } : meeting)
    assert.deepEqual(problems, [], this.#context)
    for (const path of paths ?? []) {
      const isSo = stranger!.has(path) || targets.some((it) => same(it, after, path))
      assert.ok(isSo, `${this.#context}: ${path} is said to be done`)
    }
  }

  async #operations(run: KnownRun): Promise<number> {
    const records = await this.#disk.read(run.id, 0, 10_000)
    return records.filter(({ kind }) => kind === 'files_changing').length
  }

  async #restore(run: KnownRun): Promise<void> {
    // Equal trees have equal ids: the newest checkpoint with the id counts.
    const { id: picked } = this.#random.pick(run.checkpoints)
    const target = run.checkpoints.findLast(({ id }) => id === picked)!
    const force = this.#random.chance(0.5)
    const ofOriginal = run.isolated && target.ofOriginal
    const place = ofOriginal || !run.isolated ? this.#original : this.#copyOf(run)
    const request = { checkpoint_id: target.id, force }
    const { workspaces } = this.#engine
    if (place === null) {
      const refused = workspaces.restore(run.id, request)
      return await assert.rejects(refused, { problem: 'not_kept' }, this.#context)
    }
    if (place === this.#original && this.#isBusy(run)) return
    const now = place.now!
    const { steps, done } = expectedRestore(now, target.model)
    this.#tell({ ofOriginal, isolated: run.isolated, force, steps: steps.length })
    const last = this.#newest(run, ofOriginal)
    const foreign = steps.filter((path) => !same(now, last, path))
    const after = withPaths(now, target.model, done)
    const begun = await this.#operations(run)
    const course = await this.#course(place, () => this.#engine.workspaces.restore(run.id, request))
    const paths = course.result?.paths ?? null
    if (course.stranger !== null)
      return await this.#settle(run, place, course, [target.model], paths)
    const states = ofOriginal ? [visible(now), visible(after)] : []
    const own = ofOriginal ? [] : [visible(now), visible(after)]
    if (!force && foreign.length > 0 && !course.died) {
      const { error } = course
      assert.deepEqual(
        [error?.code, (error as { paths?: unknown } | null)?.paths],
        ['ERR_AGENT_WORKSPACE_CHANGED', foreign], this.#context,
      )
      return
    }
    assert.equal(course.error, null, `${this.#context}: ${String(course.error)}`)
    if (course.died && (await this.#operations(run)) === begun) {
      return await this.#undone(run, now, ofOriginal)
    }
    place.now = after
    if (course.died) this.#count('recovered')
    else assert.deepEqual(paths, done, this.#context)
    await this.#compareDisk()
    await this.#checkpoints(run, own, states)
    if (course.result === null) return
    const { checkpoint_id } = course.result
    const undo = run.checkpoints.findLast(({ id }) => id === checkpoint_id)
    this.#same(undo!.model, visible(now), 'undo')
    await this.#undo(run, place, { ofOriginal, now, after, done }, checkpoint_id, target)
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
      if (this.#random.chance(0.5) || newest.ofOriginal !== ofOriginal) return
      const again = await this.#engine.workspaces.restore(run.id, { checkpoint_id: to })
      assert.deepEqual(again.paths, done, this.#context)
      place.now = wanted
      const states = [visible(from), visible(wanted)]
      await this.#checkpoints(run, ofOriginal ? [] : states, ofOriginal ? states : [])
      await this.#compareDisk()
    }
  }

  /** Only a checkpoint may have been made when a process died. */
  async #undone(run: KnownRun, now: Model, ofOriginal: boolean): Promise<void> {
    const { length } = await this.#engine.workspaces.checkpoints(run.id)
    if (length === run.checkpoints.length) return
    const states = [visible(now)]
    await this.#checkpoints(run, ofOriginal ? [] : states, ofOriginal ? states : [])
  }

  async #apply(run: KnownRun): Promise<void> {
    const { workspaces } = this.#engine
    if (!run.isolated || run.isDiscarded)
      return await assert.rejects(workspaces.apply(run.id, {}), { problem: 'no_changes' })
    if (run.isLive) return await assert.rejects(workspaces.apply(run.id, {}), { problem: 'live' })
    if (this.#isBusy()) return
    const { changes } = await workspaces.changes(run.id)
    const some = changes.filter(() => this.#random.chance(0.5))
    const paths =
      some.length > 0 && this.#random.chance(0.4) ? some.map(({ path }) => path) : null
    const renamed = some.flatMap(({ old_path }) => (old_path === null ? [] : [old_path]))
    const wanted = paths === null ? null : new Set([...paths, ...renamed])
    const force = this.#random.chance(0.3)
    const { start } = run
    const newest = this.#newest(run, false)
    const now = this.#folder
    const { applied, conflicts, merged, after } = expectedApply(start, newest, now, wanted, force)
    const request = { force, ...(paths !== null && { paths }) }
    const told = { some: paths !== null, applied: applied.length, conflicts: conflicts.length }
    this.#tell({ force, ...told })
    const isWaited = (await this.#engine.get(run.id)).changes === 'pending'
    if (applied.length + conflicts.length === 0 && !isWaited) {
      const refused = workspaces.apply(run.id, request)
      return await assert.rejects(refused, { problem: 'no_changes' }, this.#context)
    }
    const seen = await workspaces.apply(run.id, { ...request, dry_run: true })
    assert.deepEqual(
      seen,
      { applied, merged, skipped: [], conflicts, checkpoint_id: null },
      this.#context,
    )
    await this.#compareDisk()
    const begun = await this.#operations(run)
    const course = await this.#course(this.#original, () =>
      this.#engine.workspaces.apply(run.id, request),
    )
    if (course.stranger !== null) {
      const done = course.result?.applied ?? null
      await this.#settle(run, this.#original, course, [newest, after], done)
    } else if (conflicts.length > 0 && !force && !course.died) {
      const { error } = course
      assert.deepEqual(
        [error?.code, (error as { paths?: unknown } | null)?.paths],
        ['ERR_AGENT_WORKSPACE_CHANGED', conflicts], this.#context,
      )
      return
    } else {
      assert.equal(course.error, null, `${this.#context}: ${String(course.error)}`)
      const isUndone = course.died && (await this.#operations(run)) === begun
      if (isUndone) return await this.#undone(run, now, true)
      this.#original.now = after
      this.#count('applied')
      await this.#checkpoints(run, [], [visible(now), visible(after)])
      if (course.result !== null) {
        const { checkpoint_id: _, ...said } = course.result
        assert.deepEqual(said, { applied, merged, skipped: [], conflicts }, this.#context)
      }
    }
    const begunNow = (await this.#operations(run)) > begun
    const rest = expectedApply(start, newest, this.#newest(run, true), null, false)
    const isDone = begunNow && rest.applied.length + rest.conflicts.length === 0
    const state = (await this.#engine.get(run.id)).changes
    if (begunNow) assert.equal(state === 'applied', isDone, this.#context)
    if (state === 'applied') await this.#copyGoes(run)
  }

  async #discard(run: KnownRun): Promise<void> {
    const { changes } = await this.#engine.get(run.id)
    const discard = (): Promise<void> => this.#engine.workspaces.discard(run.id)
    if (run.isLive && run.isolated)
      return await assert.rejects(discard(), { problem: 'live' }, this.#context)
    if (!run.isolated || run.isDiscarded || changes === 'applied')
      return await assert.rejects(discard(), { problem: 'no_changes' }, this.#context)
    await this.#perhapsDying(discard)
    const { changes: state } = await this.#engine.get(run.id)
    if (state !== 'discarded') return
    run.isDiscarded = true
    await this.#copyGoes(run)
  }

  async #delete(run: KnownRun): Promise<void> {
    if (run.isLive) {
      const refused = this.#engine.delete(run.id)
      return await assert.rejects(refused, { problem: 'live' }, this.#context)
    }
    await this.#perhapsDying(() => this.#engine.delete(run.id))
    if ((await this.#disk.head(run.id)) !== null) return
    this.#runs.splice(this.#runs.indexOf(run), 1)
    if (run.isolated) await this.#copyGoes(run)
    const use = new ObjectUse(this.#disk.objects, false)
    const parts = { store: this.#disk, use, onProblem: assert.ifError }
    const { removed } = await new Reclaimer(parts).sweep()
    this.counts['reclaimed'] = (this.counts['reclaimed'] ?? 0) + removed
    await this.#everyCheckpoint()
  }

  async #fork(source: KnownRun): Promise<void> {
    const random = this.#random
    const inPlace = random.chance(0.3)
    const { changes, iteration: last } = await this.#engine.get(source.id)
    const isEnd = !source.isLive && random.chance(0.4)
    const iteration = random.integer(0, Math.min(last, source.ends.size))
    const at: JsonObject[string] = isEnd ? 'end' : iteration === 0 ? 'start' : { iteration }
    const files = isEnd
      ? this.#newest(source, false)
      : iteration === 0 ? source.start : source.ends.get(iteration)
    if (files === undefined) return
    const request = {
      at, workspace: inPlace ? 'in_place' : 'isolated', max_iterations: 1, hitl_enabled: false,
      message: `go on after ${changes}`,
    }
    this.#tell({ at, inPlace, of: source.isolated })
    if (inPlace && source.isLive) {
      const refused = this.#engine.fork(source.id, request)
      return await assert.rejects(refused, { problem: 'live' }, this.#context)
    }
    const applies = source.applies && !inPlace
    if ((inPlace && this.#gated !== undefined) || (applies && this.#isBusy())) return
    const { done } = expectedRestore(this.#folder, files)
    if (inPlace && random.chance(0.6)) {
      // Somebody gives the folder what it had.
      const back = withPaths(this.#folder, files, done)
      perform(this.#original.path, editsBetween(random, this.#folder, back), false)
      this.#original.now = back
    }
    const foreign = differing(visible(this.#folder), files)
    if (inPlace && foreign.length > 0) {
      return await assert.rejects(
        this.#engine.fork(source.id, request),
        { code: 'ERR_AGENT_WORKSPACE_CHANGED', problem: 'changed', paths: foreign },
        this.#context,
      )
    }
    const adopted = isEnd && changes === 'pending' && !inPlace ? this.#copyOf(source) : null
    const from = adopted !== null && source.isolated ? adopted.now! : this.#folder
    const begins = inPlace ? from : withPaths(from, files, expectedRestore(from, files).done)
    const work = this.#newWork(!inPlace, applies, begins, random.chance(0.7) ? 1 : 0)
    if (inPlace) this.#count('forked in place')
    if (adopted !== null) this.#count('adopted')
    await this.#drive(work, () => this.#engine.fork(source.id, request))
  }

  /** Net changes between any two checkpoints are what a comparison of their files says. */
  async #look(run: KnownRun): Promise<void> {
    const [from, to] = [this.#random.pick(run.checkpoints), this.#random.pick(run.checkpoints)]
    const range = { from: from.id, to: to.id }
    const { changes } = await this.#engine.workspaces.changes(run.id, range)
    const told = changes.flatMap(({ path, old_path: old }) => (old === null ? [path] : [path, old]))
    assert.deepEqual(told.sort(comparePaths), differing(from.model, to.model), this.#context)
    for (const { path, old_path: old, status } of changes) {
      const [before, after] = [from.model.get(old ?? path), to.model.get(path)]
      const wanted = before === undefined ? 'added' : after === undefined ? 'deleted' : 'modified'
      assert.equal(status, old === null ? wanted : 'renamed', this.#context)
      if (old !== null) assert.deepEqual(before?.content, after?.content, this.#context)
    }
  }

  // What always holds.

  async #compareDisk(): Promise<void> {
    this.#same(readModel(this.#original.path), this.#folder, 'the folder')
    assert.deepEqual(wholeTree(this.#canary), this.#canaryBefore, `${this.#context}: outside`)
    for (const { now, owner, path } of this.#places.values()) {
      if (now !== null) this.#same(readModel(path), now, `the copy of ${owner}`)
      else assert.equal(existsSync(path), false, `${this.#context}: a copy of ${owner} is left`)
    }
    // A run that has ended gives its folder back a moment after its last event.
    for (let turn = 0; turn < 100; turn++) await nextTurn()
  }

  /** Every checkpoint still has the content that it had. */
  async #everyCheckpoint(): Promise<void> {
    for (const run of this.#runs) {
      for (const { id, model } of run.checkpoints) {
        this.#same(await readCheckpoint(this.#disk.objects, id), model, `checkpoint ${id}`)
      }
    }
  }

  async end(): Promise<void> {
    this.#context += ', at the end'
    await this.#everyCheckpoint()
  }
}

function same(a: Model, b: Model, path: string): boolean {
  const only = (model: Model): Model =>
    new Map([...model].filter(([other]) => other === path))
  return differing(only(a), only(b)).length === 0
}
