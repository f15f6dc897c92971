import type { TestContext } from 'node:test'
import type { EngineOptions, JsonObject } from 'runwright/agent'
import type { Said } from '../../helpers/engine.js'
import { World, type Run } from '../../helpers/world.js'

export const FILES = { 'a.txt': 'one\ntwo\nthree\n' }
export const GOAL = 'shell: test -f goal.txt'

/** Plays the turns as one run of `request`, in a folder with `a.txt`. */
export async function play(
  t: TestContext,
  turns: readonly Said[],
  request: JsonObject = {},
  engine: Partial<EngineOptions> = {},
): Promise<Run & { readonly world: World }> {
  const world = new World(t, { files: FILES, turns, engine })
  return { world, ...(await world.run({ goal: GOAL, max_iterations: 1, ...request })) }
}
