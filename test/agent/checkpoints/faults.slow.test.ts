/**
 * Faults of the disk that last, at any call of a restore, of an apply and of a merge: afterwards
 * the folder is as before or as wanted, or the operation is still open and is finished later.
 *
 * `RUNWRIGHT_FAULTS_FIRST` and `RUNWRIGHT_FAULTS` are the first seed, and how many (1 and 10).
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  RunEngine, type Clock, type EngineOptions, type Message, type Tool,
} from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { follow, testProvider, type Said } from '../../helpers/engine.js'
import { FailingDisk, FAULT_CODES, randomFault, type Fault } from '../../helpers/faults.js'
import { Random } from '../../helpers/random.js'
import {
  file, listing, put, randomEdits, randomModel, readModel, writeModel, type Model,
} from '../../helpers/tree-model.js'
import { World } from '../../helpers/world.js'
import { editsBetween, NAMES, perform } from './model-rules.js'

const SEEDS = Number(process.env['RUNWRIGHT_FAULTS'] ?? 10)
const FIRST = Number(process.env['RUNWRIGHT_FAULTS_FIRST'] ?? 1)
/** Faults in one world: making the world takes longer than they do. */
const PER_WORLD = 40

/** Pauses between attempts are a hundredth of what they are otherwise, and patience is not. */
const FAST: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => {
    const timer = setTimeout(callback, ms > 5_000 ? ms : ms / 100)
    return { cancel: () => clearTimeout(timer) }
  },
}

const ENDS = ['heal', 'heal', 'restart'] as const

/** A folder that a run has changed, and what operations do with it. */
class Faulty {
  readonly world = new World(null)
  readonly before: Model
  readonly after: Model
  readonly counts: Record<string, number> = {}
  readonly #disk: FailingDisk
  readonly #random: Random
  #engine!: RunEngine
  #runId = ''
  #delegates = false
  #context = ''

  constructor(random: Random, disk: FailingDisk) {
    this.#random = random
    this.#disk = disk
    const before = randomModel(random, random.integer(1, 12), NAMES)
    put(before, 'kept', file('kept\n'))
    const after = randomEdits(random, before, random.integer(2, 10), NAMES)
    put(after, 'done', file('done\n'))
    this.before = before
    this.after = after
  }

  count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  async #open(): Promise<void> {
    const edit: Tool = {
      name: 'edit', description: 'Edits files.', parameters: { type: 'object' }, effect: 'unsafe',
      execute: (_, { workspace }) => {
        this.#edit(workspace.root)
        return Promise.resolve({ output: 'done', exitCode: 0 })
      },
    }
    const answer = testProvider(({ messages }) => said(messages, this.#delegates))
    this.#engine = await this.world.open({
      tools: [edit], clock: FAST, providers: [answer], delegation: { depth: 1, children: 1 },
    } satisfies Partial<EngineOptions>)
  }

  /** Gives a folder what the run makes of it. */
  #edit(folder: string): void {
    perform(folder, editsBetween(this.#random, readModel(folder), this.after), false)
  }

  async start(workspace: 'in_place' | 'isolated'): Promise<void> {
    writeModel(this.world.cwd, this.before)
    await this.#open()
    const goal = 'shell: test -e done'
    const { details, runId } = await this.world.run({ goal, workspace, max_iterations: 1 })
    assert.equal(details.status, 'achieved')
    this.#runId = runId
  }

  /** Restores, or applies, while the disk fails. */
  async operate(fault: Fault, isApply: boolean, context: string): Promise<void> {
    this.#context = context
    const [start] = await this.#engine.workspaces.checkpoints(this.#runId)
    const back = { checkpoint_id: start!.checkpoint_id, force: true }
    const { workspaces } = this.#engine
    const wanted = isApply ? this.after : this.before
    const found = readModel(this.world.cwd)
    const begun = new Promise<void>((resolve) => {
      this.#atIntent(() => {
        this.#disk.fail(fault)
        resolve()
      })
    })
    const work = isApply ? workspaces.apply(this.#runId, {}) : workspaces.restore(this.#runId, back)
    const settled = work.then(() => null, (error: unknown) => error as Error)
    await Promise.race([begun, settled])
    await this.#judge(settled, found, wanted)
    if (isApply) await this.#engine.workspaces.restore(this.#runId, back)
    else this.#edit(this.world.cwd)
  }

  /** A run brings changes of another one into its folder while the disk fails. */
  async bring(fault: Fault, by: 'delegate' | 'winner', context: string): Promise<void> {
    this.#context = context
    this.#delegates = by === 'delegate'
    writeModel(this.world.cwd, this.before)
    await this.#open()
    const found = readModel(this.world.cwd)
    let begin: () => void = () => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    this.#atIntent((runId) => {
      this.#runId = runId
      this.#disk.fail(fault)
      begin()
    })
    const request =
      by === 'delegate'
        ? { delegation: { children: 1 } }
        : { attempts: { count: 1, models: ['test:m'] }, apply: 'on_achieved' }
    const goal = 'shell: test -e done'
    const { details } = await this.#engine.create({
      goal, cwd: this.world.cwd, max_iterations: 1, ...request,
    })
    await begun
    await this.#judge(this.#decided(), found, this.after, true)
    await follow(this.#engine, details.run_id)
    const last = readModel(this.world.cwd)
    const isWhole = isSame(last, this.after) || isSame(last, found)
    assert.ok(isWhole, `${this.#context}, when it has ended: ${listing(last).join('\n')}`)
  }

  async #decided(): Promise<null> {
    while ((await this.#operation()) !== null) await nextTurn()
    return null
  }

  /** Faults begin when the intent is durable. */
  #atIntent(then: (runId: string) => void): void {
    const { store } = this.world
    const append = store.append.bind(store)
    store.append = async (runId, records) => {
      await append(runId, records)
      if (!records.some(({ kind }) => kind === 'files_changing')) return
      store.append = append
      then(runId)
    }
  }

  async #operation(): Promise<string | null> {
    return (await this.world.store.head(this.#runId))?.operation ?? null
  }

  async #judge(
    settled: Promise<Error | null>,
    found: Model,
    wanted: Model,
    isRun = false,
  ): Promise<void> {
    const late = new Promise<'late'>((resolve) => setTimeout(() => resolve('late'), 150))
    const answer = await Promise.race([settled, late])
    const isOpen = (await this.#operation()) !== null
    const all = readModel(this.world.cwd)
    const isOwn = (path: string): boolean => /\.runwright-[0-9a-f]{16}\.tmp$/.test(path)
    const now = isOpen ? new Map([...all].filter(([path]) => !isOwn(path))) : all
    const state = isSame(now, wanted) ? 'done' : isSame(now, found) ? 'undone' : 'half'
    this.count(isOpen ? `open, ${state}` : state)
    if (answer === 'late') this.count('waits')
    if (!isOpen) {
      assert.notEqual(state, 'half', `${this.#context}: ${listing(now).join('\n')}`)
      const hint = `${this.#context}: ${answer}`
      if (answer !== 'late' && !isRun) assert.equal(answer === null, state === 'done', hint)
    } else assert.notEqual(answer, null, this.#context)
    await this.#over(settled)
    const last = readModel(this.world.cwd)
    const isWhole = isSame(last, wanted) || isSame(last, found)
    assert.ok(isWhole, `${this.#context}, at the end: ${listing(last).join('\n')}`)
  }

  async #over(settled: Promise<unknown>): Promise<void> {
    this.#disk.heal()
    if (this.#random.pick(ENDS) === 'restart') {
      await this.#engine.close()
      await this.#open()
    }
    await settled
    while ((await this.#operation()) !== null) await nextTurn()
  }

  async close(): Promise<void> {
    this.#disk.heal()
    await this.world[Symbol.asyncDispose]()
  }
}

/** One call: it edits, or lets a delegate do that. */
function said(messages: readonly Message[], delegates: boolean): Said {
  if (messages.at(-1)?.role === 'tool') return { text: 'done' }
  const isDelegate = JSON.stringify(messages[0]).includes('Goal: part')
  if (!delegates || isDelegate) return { calls: [{ tool: 'edit', args: {} }] }
  return { calls: [{ tool: 'delegate', args: { goal: 'part', check: 'test -e done' } }] }
}

function isSame(a: Model, b: Model): boolean {
  return JSON.stringify(listing(a)) === JSON.stringify(listing(b))
}

/** @param play plays one world, with so many faults */
async function schedules(
  t: TestContext,
  variant: number,
  play: (faulty: Faulty, random: Random, context: string) => Promise<void>,
): Promise<void> {
  using disk = await FailingDisk.open()
  const all: Record<string, number> = {}
  let failures = 0
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const random = new Random(Math.imul(seed, 0x9e3779b1) + variant)
    const faulty = new Faulty(random, disk)
    try {
      await play(faulty, random, `seed ${seed}`)
    } catch (error) {
      failures += 1
      if (failures <= 3) t.diagnostic(String(error))
      if (process.env['RUNWRIGHT_FAULTS_COUNT'] === undefined) throw error
    } finally {
      await faulty.close()
      for (const [name, n] of Object.entries(faulty.counts)) all[name] = (all[name] ?? 0) + n
    }
  }
  t.diagnostic(`${JSON.stringify(all)}, codes ${FAULT_CODES.join(' ')}, failures ${failures}`)
}

function anyFault(random: Random): Fault {
  return randomFault(random, random.pick([8, 30, 120]))
}

for (const [variant, [name, workspace]] of [
  ['a restore', 'in_place'], ['an apply', 'isolated'],
].entries()) {
  test(`${name} that meets faults of the disk is whole, or stays open until it is`, async (t) => {
    await schedules(t, variant, async (faulty, random, context) => {
      await faulty.start(workspace as 'in_place' | 'isolated')
      for (let i = 0; i < PER_WORLD; i++) {
        const fault = anyFault(random)
        const hint = `${context}, ${i}: ${JSON.stringify(fault)} ${fault.calls}`
        await faulty.operate(fault, workspace === 'isolated', hint)
      }
    })
  })
}

for (const [variant, by] of (['delegate', 'winner'] as const).entries()) {
  test(`changes of a ${by} that meet faults of the disk come as a whole, or not`, async (t) => {
    await schedules(t, 2 + variant, async (faulty, random, context) => {
      const fault = anyFault(random)
      await faulty.bring(fault, by, `${context}: ${JSON.stringify(fault)} ${fault.calls}`)
    })
  })
}
