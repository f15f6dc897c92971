/**
 * Random histories of runs, restores, applies, forks, kills and a stranger, against a model.
 *
 * - `RUNWRIGHT_MODEL_FIRST` and `RUNWRIGHT_MODEL_SEEDS`: the first seed, and how many (1 and 12).
 * - `RUNWRIGHT_SHRINK=1`: leaves out the steps without which a seed fails all the same.
 */
import { test } from 'node:test'
import { World } from '../../helpers/world.js'
import type { Plan } from './model-known.js'
import { History } from './model.js'
import { hookFiles } from '../../helpers/mortal-process.js'

interface Played {
  readonly error: Error | null
  readonly script: readonly string[]
  readonly counts: Readonly<Record<string, number>>
}

async function play(plan: Plan): Promise<Played> {
  await using world = new World(null)
  using _ = hookFiles()
  const history = new History(plan, world)
  let error: Error | null = null
  try {
    await history.open()
    for (const step of plan.steps) await history.step(step)
    await history.end()
  } catch (cause) {
    error = cause as Error
  }
  await history.close()
  return { error, script: history.script, counts: history.counts }
}

/** Plays a seed; of one that fails, prints the fewest steps with which it does. */
async function assertHolds(plan: Plan, tell: (text: string) => void): Promise<void> {
  const { error, counts, script } = await play(plan)
  if (error === null) return tell(`seed ${plan.seed} ${JSON.stringify(counts)}`)
  const steps = plan.steps.slice(0, script.length)
  const fewest = process.env['RUNWRIGHT_SHRINK'] === undefined ? steps : await shrunk(plan, steps)
  const again = await play({ ...plan, steps: fewest })
  const shown = again.error === null ? { error, script } : again
  tell(`seed ${plan.seed} fails with the steps ${JSON.stringify(fewest)}:`)
  for (const line of shown.script) tell(line)
  throw shown.error!
}

/** Delta debugging: leaves out ever smaller parts of the steps while the rest still fails. */
async function shrunk(plan: Plan, all: readonly number[]): Promise<readonly number[]> {
  let steps = all
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < steps.length; ) {
      const fewer = steps.toSpliced(from, size)
      if ((await play({ ...plan, steps: fewer })).error === null) from += size
      else steps = fewer
    }
  }
  return steps
}

const numbers = (length: number): number[] => Array.from({ length }, (_, i) => i)

test('folders, copies and checkpoints are what a model says', async (t) => {
  const plan = { seed: 3, steps: numbers(6), bigBytes: 100 }
  await assertHolds(plan, (text) => t.diagnostic(text))
})

const SEEDS = Number(process.env['RUNWRIGHT_MODEL_SEEDS'] ?? 12)
const FIRST = Number(process.env['RUNWRIGHT_MODEL_FIRST'] ?? 1)

test('folders, copies and checkpoints are what a model says, in many random histories', async (t) => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const plan = { seed, steps: numbers(40), bigBytes: seed % 10 === 0 ? 20_000_000 : 5_000 }
    await assertHolds(plan, (text) => t.diagnostic(text))
  }
})
