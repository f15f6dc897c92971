/** Runs, their folders and a stranger, beside a model in memory of what all of them have. */
import { Random } from '../../helpers/random.js'
import type { KnownRun } from './model-known.js'
import { Operations } from './model-operations.js'

type Action = () => Promise<void>

/** One random history. */
export class History extends Operations {
  async step(number: number): Promise<void> {
    // Of its own, so that steps can be left out and the others stay what they are.
    const random = new Random((this.plan.seed * 1_000 + number) * 0x9e3779b1)
    for (let i = 0; i < 8; i++) random.next()
    this.random = random
    const picked = (): KnownRun => random.pick(this.runs)
    const actions: Readonly<Record<string, readonly [weight: number, Action]>> = {
      run: [2, () => this.run()],
      stranger: [2, () => Promise.resolve(this.stranger())],
      restore: [3, () => this.restore(picked(), false)],
      'restore beside a stranger': [4, () => this.restore(picked(), true)],
      apply: [4, () => this.apply(picked())],
      fork: [3, () => this.fork(picked())],
      discard: [1, () => this.discard(picked())],
      delete: [1, () => this.delete(picked())],
      message: [1, () => this.message(picked())],
      look: [2, () => this.look(picked())],
      resume: [2, () => this.resume()],
      restart: [1, () => this.restart()],
    }
    const names = Object.entries(actions).flatMap(([name, [weight]]) =>
      Array<string>(weight).fill(name),
    )
    const wanted = random.pick(names)
    const name = this.runs.length === 0 && wanted !== 'stranger' ? 'run' : wanted
    this.context = `seed ${this.plan.seed}, step ${number}: ${name}`
    this.count(name)
    try {
      await actions[name]![1]()
      await this.compareDisk()
    } finally {
      this.script.push(this.context)
    }
  }

  async end(): Promise<void> {
    this.context += ', at the end'
    await this.everyCheckpoint()
  }
}
