import assert from 'node:assert/strict'
import { existsSync, realpathSync } from 'node:fs'
import {
  AgentError, FileStore, RunEngine, type AgentEvent, type Executor, type Message, type RunDetails,
  type RunStore, type Tool,
} from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { follow, testProvider, type Said } from '../../helpers/engine.js'
import { listing, readModel, type Model, type ModelFile } from '../../helpers/tree-model.js'
import { Folders } from './model-folders.js'
import type { Course, KnownRun, Place, Sent, Work } from './model-known.js'
import { baseOf, differing, expectedApply, readCheckpoint, visible } from './model-rules.js'
import { mortalClock, MortalProcess } from '../../helpers/mortal-process.js'

const GATE = ({ kind }: { readonly kind: string }): boolean => kind === 'human_check_required'

/** Runs, and the processes that drive them and may die. */
export class Runs extends Folders {
  #process!: MortalProcess
  readonly #dead: MortalProcess[] = []
  protected engine!: RunEngine
  protected readonly runs: KnownRun[] = []
  readonly #sent: Sent[] = []
  #work: Work | null = null
  #failure: Error | null = null

  async open(): Promise<void> {
    if (this.#process?.isDead === true) this.#dead.push(this.#process)
    const process = new MortalProcess(this.disk as RunStore, () => this.random.chance(0.5))
    this.#process = process
    const provider = testProvider(async ({ messages }) => {
      if (process.isDead) return await process.nothing
      const said = await this.#noting(() => this.#answer(messages))
      return process.isDead ? await process.nothing : said
    })
    const store = process.store
    const engine = await process.inside(RunEngine).open({
      store,
      roots: [this.original.path],
      providers: [provider],
      defaultModel: 'test:m',
      tools: [this.#tool(process)],
      executor: this.#executor(),
      // The model knows no groups of files: what an apply would hold back.
      sealedChecks: 'off',
      workspaceFolder: this.world.copies,
      clock: mortalClock(process.died),
    })
    this.engine = process.inside(engine)
  }

  async close(): Promise<void> {
    if (!this.#process.isDead) await this.engine.close()
    await this.disk.close()
    for (const process of [...this.#dead, this.#process]) process.bury()
  }

  /** Another process of the same data. */
  protected async restart(): Promise<void> {
    if (!this.#process.isDead) await this.engine.close()
    if (this.disk instanceof FileStore) {
      await this.disk.close()
      this.disk = this.openDisk()
    }
    await this.open()
    for (const { id } of this.runs) {
      while (((await this.disk.head(id))?.operation ?? null) !== null) await nextTurn()
    }
  }

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
    const running = (await this.disk.list({ status: ['running'], limit: 1 })).heads[0]?.details
    const work = this.#work
    if (running === undefined || work === null) return {}
    const all = JSON.stringify(messages)
    for (const { runId, text, isStored } of this.#sent) {
      const times = all.split(text).length - 1
      const isOwn = runId === running.run_id
      const isWrong = times > 1 || (isOwn && isStored && times === 0)
      assert.ok(!isWrong, `${this.context}: ${text} was heard ${times} times`)
    }
    if (messages.at(-1)?.role !== 'tool') return { calls: [{ tool: 'edit', args: {} }] }
    // The folder is changed by somebody else while the run works.
    if (this.random.chance(0.3)) this.stranger()
    const end = visible(work.isolated ? (work.place?.now ?? work.begins) : this.folder)
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
        if (process.isDead) return await process.nothing
        const head = await this.disk.head(runId)
        if (process.isDead) return await process.nothing
        const work = this.#work!
        const place = await this.#noting(() => this.#placeOf(work, runId, workspace.root))
        // An apply creates new empty folders, which the model does not track.
        this.edit(place, false, !work.isolated)
        if (head?.details.iteration === work.last) work.isMet = true
        if (this.random.chance(0.15)) await this.#send(runId)
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
      ? (this.places.get(path) ?? { path, owner: runId, now: null })
      : this.original
    assert.equal(place.path, path, this.context)
    this.same(readModel(path), work.begins, 'the folder when the run begins')
    place.now = work.begins
    if (work.isolated) {
      place.owner = runId
      this.places.set(path, place)
    }
    work.place = place
    return place
  }

  async #send(runId: string): Promise<void> {
    const message: Sent = { runId, text: `<message ${this.#sent.length}>`, isStored: false }
    this.#sent.push(message)
    this.count('sent')
    const deliver = this.random.pick(['next_turn', 'next_turn', 'next_iteration'])
    await this.engine.message(runId, { text: message.text, deliver })
    message.isStored = deliver === 'next_turn'
  }

  protected async message(run: KnownRun): Promise<void> {
    if (run.isLive) return void (await this.perhapsDying(() => this.#send(run.id)))
    const refused = this.engine.message(run.id, { text: 'too late' })
    await assert.rejects(refused, { problem: 'ended' }, this.context)
  }

  /** Does something in a process that may die at any of its calls. */
  protected async perhapsDying<T>(
    work: () => Promise<T>,
    meanwhile: () => void = () => undefined,
  ): Promise<{ readonly result: T } | null> {
    if (this.random.chance(0.4)) {
      const most = this.random.pick([10, 40, 150])
      const record = this.random.pick([undefined, undefined, 'files_changing', 'files_changed'])
      const calls = this.random.integer(1, record === 'files_changed' ? 5 : most)
      this.#process.dieAfter(calls, record)
    }
    const done = work().then((result) => ({ result }))
    const course = await Promise.race([done, this.#process.died.then(() => null)])
    this.#process.live()
    if (course !== null && !this.#process.isDead) return course
    done.catch(() => undefined)
    if (!this.#process.isDead) return course
    await this.#process.died
    this.count('killed')
    this.context += ', killed'
    meanwhile()
    await this.restart()
    return null
  }

  /** Changes a folder, perhaps beside a stranger, in a process that may die. */
  protected async course<T>(
    place: Place,
    steps: readonly string[],
    isSure: boolean,
    work: () => Promise<T>,
  ): Promise<Course<T>> {
    const changed = new Map<string, ModelFile | undefined>()
    const meets = isSure || this.random.chance(0.4)
    const atEnd = meets && !isSure && this.random.chance(0.3)
    // A step takes about eight calls.
    const isChanging = isSure || this.random.chance(0.5)
    const most = isChanging ? 8 * Math.min(1 + steps.length, 8) : 60
    const calls = this.random.integer(1, most)
    const meet = (name = ''): void => {
      const looked = steps.filter((path) => path === name || path.endsWith(`/${name}`))
      this.meet(place, changed, looked.length > 0 && this.random.chance(0.8) ? looked : steps)
    }
    if (meets && !atEnd) this.#process.meet(calls, isChanging, meet)
    const meanwhile = (): void => (atEnd ? meet() : undefined)
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
    const course = await this.perhapsDying(attempt, meanwhile)
    const stranger = changed.size > 0 ? changed : null
    if (stranger !== null) this.tell({ stranger: [...stranger.keys()] })
    return { result: course?.result ?? null, error, died: course === null, stranger }
  }

  protected get gated(): KnownRun | undefined {
    return this.runs.find(({ isLive }) => isLive)
  }

  /** A run that waits at a gate keeps others from its folder. */
  protected isBusy(except?: KnownRun): boolean {
    const gated = this.gated
    return gated !== undefined && !gated.isolated && gated !== except
  }

  protected async run(): Promise<void> {
    const random = this.random
    const isolated = this.gated !== undefined || random.chance(0.6)
    const isGated = this.gated === undefined && random.chance(0.3)
    const iterations = random.integer(1, 3)
    const applies = isolated && !this.isBusy() && random.chance(0.4)
    const isAchieved = random.chance(0.8) && !isGated
    const begins = this.folder
    const work = this.newWork(isolated, applies, begins, isAchieved ? iterations : 0)
    this.tell({ isolated, isGated, applies, iterations })
    await this.drive(work, () =>
      this.engine.create({
        goal: 'shell: check',
        cwd: this.original.path,
        workspace: isolated ? 'isolated' : 'in_place',
        max_iterations: isGated ? 3 : iterations,
        hitl_enabled: isGated,
        ...(applies && { apply: 'on_achieved' }),
      }),
    )
  }

  protected newWork(
    isolated: boolean,
    applies: boolean,
    begins: Model,
    last: number,
    began: Model = visible(begins),
  ): Work {
    const states = [visible(begins)]
    const none = { place: null, isMet: false, ends: new Map<number, Model>() }
    return { isolated, applies, begins, began, last, states, ...none }
  }

  /** Starts a run and follows it to its end or gate, whichever process drives it. */
  protected async drive(
    work: Work,
    begin: () => Promise<{ readonly details: RunDetails }>,
  ): Promise<void> {
    const before = new Set(this.runs.map(({ id }) => id))
    this.#work = work
    const diesLate = work.applies && this.random.chance(0.4)
    const course = await this.perhapsDying(async () => {
      if (diesLate) this.#process.dieAfter(this.random.integer(1, 3), 'files_changed')
      const { details } = await begin()
      return await follow(this.engine, details.run_id, GATE)
    })
    const { runs } = await this.engine.list()
    const added = runs.find(({ run_id }) => !before.has(run_id))
    if (added === undefined) return assert.equal(course, null, this.context)
    const id = added.run_id
    const events = course?.result ?? (await follow(this.engine, id, GATE))
    this.#assertNoFailure(events)
    // A call that was cut off is not repeated: the run may have changed nothing.
    if (work.place === null) {
      assert.equal(course, null, `${this.context}: ${id} did nothing`)
      const copy = realpathSync(this.world.copyOf(id))
      this.#placeOf(work, id, work.isolated ? copy : this.original.path)
    }
    const run: KnownRun = {
      id,
      isolated: work.isolated,
      applies: work.applies,
      place: work.place!,
      checkpoints: [],
      start: visible(work.begins),
      began: work.began,
      isLive: GATE(events.at(-1)!),
      isDiscarded: false,
      ends: work.ends,
    }
    this.runs.push(run)
    // A gate may follow a call that was cut off.
    if (course === null) work.states.push(visible(run.place.now!))
    await this.#afterWork(run, work)
  }

  #assertNoFailure(events: readonly AgentEvent[]): void {
    assert.ifError(this.#failure)
    const failed = events.find(({ kind, payload }) =>
      (kind === 'log' && /checkpoint was made/.test((payload as { message: string }).message)) ||
      (kind === 'run_end' && (payload as { end_reason?: string }).end_reason === 'error'),
    )
    assert.equal(failed, undefined, `${this.context}: ${JSON.stringify(failed)}`)
  }

  /** What must hold when a run has ended or waits at a gate. */
  async #afterWork(run: KnownRun, work: Work): Promise<void> {
    this.#work = null
    const { status, changes } = await this.engine.get(run.id)
    const originals: Model[] = []
    const newest = work.states.at(-1) ?? this.newest(run, false)
    let isApplied = false
    if (run.applies && status === 'achieved') {
      const plan = expectedApply(baseOf(run, this.folder), newest, this.folder, null, false)
      if (plan.conflicts.length === 0 && plan.applied.length > 0) {
        this.count('applied itself')
        originals.push(visible(this.folder), visible(plan.after))
        this.original.now = plan.after
        const rest = expectedApply(baseOf(run, plan.after), newest, plan.after, null, false)
        isApplied = rest.applied.length + rest.conflicts.length === 0
        await this.#assertAppliedOnce(run)
      }
    }
    const isPending =
      run.isolated && status === 'achieved' && differing(run.began, newest).length > 0
    assert.equal(changes, isApplied ? 'applied' : isPending ? 'pending' : null, this.context)
    await this.checkpoints(run, work.states, originals)
    if (isApplied) await this.copyGoes(run)
    await this.#messagesAreStored(run)
  }

  async #assertAppliedOnce({ id }: KnownRun): Promise<void> {
    const events = await this.engine.events(id, { after: 0, limit: 10_000 })
    const applies = events.filter(({ kind }) => kind === 'files_changed')
    const refused = events.filter(({ payload }) => /stay pending/.test(JSON.stringify(payload)))
    assert.deepEqual([applies.length, refused], [1, []], this.context)
  }

  async #messagesAreStored({ id }: KnownRun): Promise<void> {
    const events = await this.engine.events(id, { after: 0, limit: 10_000 })
    const texts = events.flatMap(({ kind, payload }) =>
      kind === 'user_message' ? [(payload as { readonly text: string }).text] : [],
    )
    for (const { runId, text, isStored } of this.#sent) {
      if (runId !== id) continue
      const times = texts.filter((it) => it === text).length
      const isRight = times === 1 || (times === 0 && !isStored)
      assert.ok(isRight, `${this.context}: ${text} is there ${times} times`)
    }
  }

  protected async resume(): Promise<void> {
    const run = this.gated
    if (run === undefined) return
    const place = run.place
    const work: Work = {
      ...this.newWork(run.isolated, run.applies, place.now!, 0),
      place, ends: run.ends, states: [],
    }
    this.#work = work
    const { gate, last_seq } = await this.engine.get(run.id)
    const decision = this.random.chance(0.7) ? 'approve' : 'abort'
    const next = (event: AgentEvent): boolean => GATE(event) && event.seq > last_seq
    const course = await this.perhapsDying(async () => {
      await this.engine.resume(run.id, { decision })
      return await follow(this.engine, run.id, next)
    })
    const now = await this.engine.get(run.id)
    if (course === null && now.gate?.gate_id === gate?.gate_id) return
    const events = course?.result ?? (await follow(this.engine, run.id, next))
    this.#assertNoFailure(events)
    run.isLive = GATE(events.at(-1)!)
    if (course === null) work.states.push(visible(place.now!))
    await this.#afterWork(run, work)
  }

  /**
   * New checkpoints have what the folder and the original had, in this order, and the last ones
   * have what these had last.
   */
  protected async checkpoints(
    run: KnownRun,
    own: readonly Model[],
    original: readonly Model[],
  ): Promise<void> {
    const all = await this.engine.workspaces.checkpoints(run.id)
    const at = { own: 0, original: 0 }
    for (const { checkpoint_id: id, reason, iteration } of all.slice(run.checkpoints.length)) {
      const model = await readCheckpoint(this.disk.objects, id)
      const ofOriginal = reason === 'apply'
      const whose = ofOriginal ? 'original' : 'own'
      const candidates = ofOriginal ? original : own
      const lines = JSON.stringify(listing(model))
      const from = at[whose]
      const index = candidates.findIndex(
        (one, i) => i >= from && JSON.stringify(listing(one)) === lines,
      )
      if (index < 0) this.same(model, candidates.at(-1) ?? new Map(), `checkpoint ${id}`)
      assert.ok(index >= 0, `${this.context}: a checkpoint of what was over`)
      at[whose] = index
      run.checkpoints.push({ id, ofOriginal, iteration, model })
    }
    for (const [ofOriginal, last] of [[false, own.at(-1)], [true, original.at(-1)]] as const) {
      if (last === undefined) continue
      this.same(this.newest(run, ofOriginal), last, 'the newest checkpoint')
    }
  }

  protected newest(run: KnownRun, ofOriginal: boolean): Model {
    return run.checkpoints.findLast((one) => one.ofOriginal === ofOriginal)?.model ?? run.start
  }

  /** The copy in which a run works; null when it is gone, or another run's. */
  protected copyOf(run: KnownRun): Place | null {
    return run.place.owner === run.id && run.place.now !== null ? run.place : null
  }

  protected async copyGoes(run: KnownRun): Promise<void> {
    const copy = run.isolated ? this.copyOf(run) : null
    if (copy === null) return
    copy.now = null
    // What a dead process left is removed by the next one, sooner or later.
    while (existsSync(copy.path)) await nextTurn()
  }
}
