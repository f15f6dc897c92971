/**
 * Random cases for a `FileStore` on a simulated disk: several processes one after the other, each
 * of which works, meets faults, and ends in some way; after each opening a model says what must be
 * there. A seed makes a case, the same one each time.
 *
 * @module
 */
import type { LockHolder } from '../../../lib/agent/stores/file/lock.js'
import { Random } from '../../helpers/random.js'
import { StoreModel, Violation } from './disk-model.js'
import { DIRECTORY, ROOT, Session, turn, type Trace } from './disk-session.js'
import {
  SimulatedDisk,
  type Fault,
  type Operation,
  type OperationKind,
  type Plan,
} from './simulated-disk.js'

/** How a process ends, or what happens to it. */
type Story = 'quiet' | 'errors' | 'crash' | 'power loss' | 'takeover'

const STORIES: readonly Story[] = [
  'quiet', 'quiet', 'errors', 'errors', 'errors', 'crash', 'crash', 'power loss', 'power loss',
  'takeover', 'takeover',
]

const WRITES: readonly OperationKind[] = ['writeNow', 'write']
const NAMES: readonly OperationKind[] = ['rename', 'link', 'remove', 'open']
const SYNCS: readonly OperationKind[] = ['sync', 'syncDirectory']
const READS: readonly OperationKind[] = ['open', 'read', 'readNow', 'stat', 'list']

const CHANGES: readonly OperationKind[] = [...WRITES, ...SYNCS, ...NAMES, 'truncate']

/** What a system reports, and for which operations it may. */
const ERRORS: readonly (readonly [code: string, kinds: readonly OperationKind[]])[] = [
  ['ENOSPC', WRITES],
  ['ENOSPC', [...WRITES, 'sync', 'open', 'link', 'rename']],
  ['EROFS', [...WRITES, 'truncate', ...NAMES]],
  ['EACCES', NAMES],
  ['EACCES', [...NAMES, 'list', 'stat']],
  ['EMFILE', ['open', 'list']],
  ['EIO', WRITES],
  ['EIO', SYNCS],
  ['EIO', ['sync']],
  ['EIO', ['syncDirectory']],
  ['EIO', READS],
  ['EIO', NAMES],
  ['EIO', [...WRITES, 'truncate', ...SYNCS, ...NAMES]],
]

/** Files that a fault may concern. */
const PATHS: readonly RegExp[] = [/./, /./, /journal/, /checkpoint/, /\.new/, /lock/, /data$/]

/** Plays the case of a seed. @throws Violation */
export async function playCase(seed: number, trace: Trace | null = null): Promise<void> {
  await new DiskCase(seed, trace).play()
}

class DiskCase {
  readonly #random: Random
  readonly #trace: Trace
  /** Are operations to be traced as well? */
  readonly #isTraced: boolean
  readonly #disk = new SimulatedDisk(ROOT)
  readonly #model: StoreModel
  readonly #segmentBytes: number
  /** Cases with damage are cases of their own: after it, less can be asserted. */
  #damages: boolean
  /** True from a loss of power, or a witness that was not written, to the next opening. */
  #hasNoWitness = false
  /** True when the model does not know any more which process was right. */
  #isOver = false
  /** True between damage and the next opening, which finds it. */
  #isUnnoticed = false
  #processes = 0
  #boots = 0

  constructor(seed: number, trace: Trace | null) {
    // Neighbouring seeds differ in few bits; mixing them makes the cases differ from the start.
    this.#random = new Random(Math.imul(seed + 1, 0x9e3779b1))
    for (let i = 0; i < 4; i++) this.#random.next()
    this.#isTraced = trace !== null
    this.#trace = trace ?? (() => {})
    this.#model = new StoreModel(this.#random.chance(0.2) ? this.#random.integer(0, 6) : undefined)
    this.#segmentBytes = this.#random.pick([1024, 1024, 1024, 2048, 8192])
    this.#damages = this.#random.chance(0.25)
  }

  async play(): Promise<void> {
    const sessions = this.#random.integer(2, 4)
    for (let i = 0; i < sessions; i++) {
      if (i > 0 && this.#damages && !this.#isUnnoticed && this.#random.chance(0.6)) this.#damage()
      const story = this.#random.pick(STORIES)
      this.#trace(`-- ${story}`)
      if (story === 'takeover') await this.#takeover()
      else await this.#session(story)
      if (this.#isOver) return
      if (this.#random.chance(0.3)) this.#evict()
    }
    this.#trace('-- the end')
    const last = this.#start(this.#holder(), null)
    await last.open()
    await last.verify()
    await last.heal()
    await last.close()
  }

  #start(
    holder: LockHolder,
    plan: Plan | null,
    more: { disk?: SimulatedDisk; model?: StoreModel; seed?: number } = {},
  ): Session {
    const name = holder.token.replace('token-', '#')
    const trace: Trace = (line) => this.#trace(`${name} ${line}`)
    return new Session({
      disk: this.#disk,
      model: this.#model,
      seed: this.#random.integer(1, 0x7fffffff),
      holder,
      plan: this.#isTraced ? traced(plan ?? (() => null), trace) : plan,
      isFaulty: plan !== null,
      segmentBytes: this.#segmentBytes,
      trace,
      ...more,
    })
  }

  async #session(story: Exclude<Story, 'takeover'>): Promise<void> {
    const random = this.#random
    const bursts = random.integer(1, 8)
    const dies = story === 'crash' || story === 'power loss'
    const faults: Plan[] = []
    if (story === 'errors' || (dies && random.chance(0.3))) faults.push(this.#errors())
    if (dies) faults.push(this.#death())
    const plan = faults.length === 0 ? null : firstOf(faults)
    let session = this.#start(this.#holder(), plan)
    if (!(await session.open())) {
      if (session.process.isDead) return this.#end(session, story)
      await session.close()
      this.#trace('opening again')
      session = this.#start(this.#holder(), null)
      await session.open()
    }
    if (!session.process.isDead) this.#hasOpened()
    if (!(await session.verify()) && !session.process.isDead) {
      await session.heal()
      await session.verify()
    }
    await session.work(bursts)
    if (dies) return this.#end(session, story)
    if (random.chance(0.7)) await session.heal()
    else if (random.chance(0.5)) await session.verify()
    const end: readonly Story[] = [story, story, story, 'crash', 'power loss', 'power loss']
    await this.#end(session, random.pick(end))
  }

  #hasOpened(): void {
    this.#isUnnoticed = false
    this.#hasNoWitness = false
  }

  async #end(session: Session, story: Story): Promise<void> {
    if (session.process.couldNotWitness) this.#hasNoWitness = true
    if (story !== 'crash' && story !== 'power loss') return session.close()
    await session.kill()
    // The power does not fail as well before a process has seen the damage.
    if (story === 'crash' || this.#isUnnoticed) return
    this.#boots += 1
    this.#hasNoWitness = true
    this.#disk.losePower(this.#random)
  }

  /**
   * A process sleeps at any of its operations, and wakes up after another one has taken over.
   * JavaScript cannot wait in the middle of synchronous code, so this is played twice: first the
   * process dies where it falls asleep, and the other takes over; then the same happens on a copy
   * of the disk up to that operation, from where it goes on with the real disk.
   */
  async #takeover(): Promise<void> {
    const random = this.#random
    const seed = random.integer(1, 0x7fffffff)
    const errors = random.chance(0.4) ? this.#errors() : null
    const sleep = this.#sleep(errors)
    const bursts = random.integer(1, 8)
    const disk = this.#disk.clone(ROOT)
    const model = this.#model.clone()
    const holder = this.#holder()
    const first = this.#start(holder, sleep(), { seed })
    first.isFaulty = errors !== null
    let slept: Operation | null = null
    first.process.onSleep = (operation) => {
      slept = operation
      first.process.kill()
    }
    await this.#drive(first, bursts)
    if (first.process.couldNotWitness) this.#hasNoWitness = true
    if (slept === null) return
    await first.kill()
    // What it writes after it wakes up is hidden by what later damage may destroy.
    this.#damages = false
    this.#trace(`asleep before ${describe(slept)}`)
    this.#expireLocks()
    const successor = this.#start({ ...this.#holder(), namespace: 'elsewhere' }, null)
    await successor.open()
    this.#hasOpened()
    await successor.verify()
    if (random.chance(0.5)) await successor.work(random.integer(1, 3))
    const sleeper = this.#start(holder, sleep(), { seed, disk, model })
    sleeper.isFaulty = errors !== null
    await this.#wakeUp(sleeper, bursts, successor, slept)
  }

  /**
   * Makes plans that let a process sleep at the same operation: any, one that changes something, or
   * one of the rare ones. Before it, the process may meet errors.
   */
  #sleep(errors: Plan | null): () => Plan {
    const random = this.#random
    const way = random.integer(0, 9)
    const rare = random.pick([['truncate'], ['truncate'], ['rename'], ['remove']] as const)
    const kinds: readonly OperationKind[] | null = way < 4 ? null : way < 8 ? CHANGES : rare
    const at = random.integer(1, way < 4 ? 300 : way < 8 ? 120 : 6)
    return () => {
      let count = 0
      return (operation) => {
        const isCounted = kinds === null || kinds.includes(operation.kind)
        if (isCounted && ++count === at) return { kind: 'sleep' }
        return errors?.(operation) ?? null
      }
    }
  }

  /** The process that slept goes on, at the same time as the one that replaced it. */
  async #wakeUp(
    sleeper: Session,
    bursts: number,
    successor: Session,
    slept: Operation,
  ): Promise<void> {
    const random = this.#random
    let isAwake = false
    sleeper.process.onSleep = () => {
      this.#trace('awake')
      isAwake = true
      sleeper.process.disk = this.#disk
      sleeper.replacedBy = this.#model
    }
    const others = random.integer(0, 3)
    let isDone = false
    const driven = this.#drive(sleeper, bursts).finally(() => (isDone = true))
    driven.catch(() => {})
    const isStolen = (): boolean => {
      const lock = this.#disk.names.get(`${DIRECTORY}/lock`)
      return lock?.content.includes(`"${successor.token}"`) !== true
    }
    while (!isAwake && !isDone) await turn()
    if (!isAwake) {
      await driven
      throw new Error('the case is not deterministic: the process did not fall asleep again')
    }
    // What it does before it looks at the lock may make calls of the other fail, but never wrong.
    successor.isFaulty = true
    const isParallel = random.chance(0.5)
    try {
      if (isParallel) await successor.work(others)
      await driven
    } catch (error) {
      if (!isStolen()) throw error
    }
    if (isStolen()) return this.#endBoth(sleeper, successor, slept)
    await sleeper.close()
    await successor.drain()
    successor.isFaulty = false
    if (!isParallel) await successor.work(others)
    await successor.verify()
    if (random.chance(0.5)) await successor.kill()
    else await successor.close()
    this.#expireLocks()
  }

  /** Locks of processes that cannot be looked up expire with time. */
  #expireLocks(): void {
    for (const [path, file] of this.#disk.names) if (path.includes('lock')) file.mtimeMs = 0
  }

  /**
   * Between a look at the lock and its replacement or removal lies one operation, which no file
   * system call can close: who sleeps just there takes the lock from a living process. That one
   * stops working then, but it loses nothing.
   */
  async #endBoth(sleeper: Session, successor: Session, slept: Operation): Promise<void> {
    const isWindow = slept.path.endsWith('/lock') && ['rename', 'remove'].includes(slept.kind)
    if (!isWindow) throw new Violation('a process took the lock from a living one')
    await sleeper.abandon()
    await successor.abandon()
    this.#expireLocks()
    // It took the lock and went on rightfully: what it acknowledged counts as well.
    if (slept.kind === 'rename') this.#isOver = true
  }

  async #drive(session: Session, bursts: number): Promise<void> {
    if (!(await session.open())) return
    await session.verify()
    await session.work(bursts)
    await session.drain()
    if (!session.process.isDead) await session.close()
  }

  /** A process that can be looked up and has ended, unless the machine has started anew. */
  #holder(): LockHolder {
    this.#processes += 1
    return {
      // No system has processes with so high a number.
      pid: 1_000_000_000 + this.#processes,
      started: '1',
      boot: `boot-${this.#boots}`,
      namespace: 'here',
      host: 'simulated',
      token: `token-${this.#processes}`,
    }
  }

  /** One to three spans of operations that fail. */
  #errors(): Plan {
    const random = this.#random
    const spans = Array.from({ length: random.integer(1, 3) }, () => {
      const from = random.chance(0.3) ? random.integer(1, 60) : random.integer(30, 400)
      const length = random.chance(0.5) ? random.integer(1, 3) : random.integer(3, 60)
      return {
        from,
        to: from + length,
        error: random.pick(ERRORS),
        path: random.pick(PATHS),
        partly: random.chance(0.3),
      }
    })
    return ({ kind, path, number }) => {
      for (const span of spans) {
        if (number < span.from || number >= span.to) continue
        const [code, kinds] = span.error
        if (!kinds.includes(kind) || !span.path.test(path)) continue
        // A write is cut anywhere; of other operations only a failing device does a part.
        const partly = WRITES.includes(kind) || (span.partly && code === 'EIO')
        return { kind: 'error', code, partly }
      }
      return null
    }
  }

  #death(): Plan {
    const at = this.#random.chance(0.3)
      ? this.#random.integer(1, 60)
      : this.#random.integer(30, 400)
    const partly = this.#random.chance(0.5)
    return ({ number }) => (number === at ? { kind: 'crash', partly } : null)
  }

  /** Memory is needed: unchanged blocks of files are dropped, and read from the disk again. */
  #evict(): void {
    for (const file of this.#disk.names.values()) if (this.#random.chance(0.5)) file.evict()
  }

  /** Damages one file: it is missing, empty, shorter, or differs in one bit. */
  #damage(): void {
    const random = this.#random
    const names = [...this.#disk.names.keys()].filter((path) => !path.includes('lock')).sort()
    const last = names.filter((path) => /journal|tail/.test(path)).slice(-3)
    const paths = this.#hasNoWitness ? names.filter((path) => !last.includes(path)) : names
    if (paths.length === 0) return
    const path = random.pick(paths)
    const { content } = this.#disk.names.get(path) ?? { content: Buffer.alloc(0) }
    const way = random.pick(['missing', 'empty', 'shorter', 'flipped'] as const)
    if (content.length === 0 && way !== 'missing') return
    this.#isUnnoticed = true
    this.#trace(`damage: ${path} is ${way}`)
    if (way === 'missing') this.#disk.damage(path, null)
    else if (way === 'empty') this.#disk.damage(path, Buffer.alloc(0))
    else if (way === 'shorter') {
      const part = content.subarray(0, random.integer(1, content.length - 1))
      this.#disk.damage(path, Buffer.from(part))
    } else {
      const flipped = Buffer.from(content)
      const at = random.integer(0, content.length - 1)
      flipped[at] = (flipped[at] ?? 0) ^ (1 << random.integer(0, 7))
      this.#disk.damage(path, flipped)
    }
    // The index file only repeats what the journal says.
    if (path.includes('checkpoint')) this.#model.isIndexDamaged = true
    else this.#model.isDamaged = true
  }
}

function firstOf(plans: readonly Plan[]): Plan {
  return (operation) => {
    for (const plan of plans) {
      const fault = plan(operation)
      if (fault !== null) return fault
    }
    return null
  }
}

function traced(plan: Plan, trace: Trace): Plan {
  return (operation) => {
    const fault = plan(operation)
    trace(`${describe(operation)}${fault === null ? '' : `: ${describeFault(fault)}`}`)
    return fault
  }
}

function describe({ number, kind, path }: Operation): string {
  return `${number} ${kind} ${path.slice(DIRECTORY.length + 1)}`
}

function describeFault(fault: Fault): string {
  if (fault.kind === 'sleep') return 'sleeps'
  const what = fault.kind === 'error' ? fault.code : 'dies'
  return fault.partly ? `${what} after a part` : what
}
