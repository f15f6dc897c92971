import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../helpers/random.js'
import { PlannedServer, randomPlan } from './random-calls.js'

/** A hook that does nothing, but for which a call takes the general way. */
const HOOKED = { eventHooks: { request: [() => {}] } }

/** Plays random plans by the short way and by the general one, and compares all that can be seen. */
async function compareWays(plans: number, firstSeed: number): Promise<void> {
  await using server = await PlannedServer.start()
  for (let seed = firstSeed; seed < firstSeed + plans; seed++) {
    const plan = randomPlan(new Random(seed), server.origin)
    const short = await server.play(plan, {})
    const general = await server.play(plan, HOOKED)
    assert.deepEqual(short, general, `seed ${seed}`)
  }
}

test('plain calls do what calls with a hook that does nothing do, in 25 random plans', async () => {
  await compareWays(25, 500)
})

test('plain calls do what calls with a hook that does nothing do, in 1000 random plans', async () => {
  await compareWays(1000, 1000)
})
