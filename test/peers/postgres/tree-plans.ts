/** The trees that `chaos-trees.test.ts` lets run: what is asked, and what the test does to them. */
import type { JsonObject } from 'runwright/agent'

export interface TreePlan {
  readonly name: string
  readonly request: JsonObject
  /** The root is aborted once this many attempts or delegates were started. */
  readonly abortAfter?: number
  /** It can end only by its budget or an abort. */
  readonly isEndless?: boolean
}

/** What the file has that all attempts change. */
export const STORY = 'one\ntwo\nthree\n'

const STORY_GOAL = 'shell: grep -q line story.txt'
const PARTS_GOAL = 'shell: cat a.txt b.txt shared.txt'

const models = (...names: readonly string[]): JsonObject => ({
  count: names.length,
  models: names.map((name) => `test:${name}`),
})

/** Trees are of these kinds in turn. */
export const TREE_PLANS: readonly TreePlan[] = [
  {
    name: 'first',
    request: { goal: STORY_GOAL, attempts: models('bad', 'late', 'line') },
  },
  {
    name: 'delegates in place',
    request: { goal: PARTS_GOAL, model_name: 'test:boss', delegation: { children: 16 } },
  },
  {
    name: 'smallest',
    request: { goal: STORY_GOAL, attempts: { ...models('long', 'line'), choose: 'smallest' } },
  },
  {
    name: 'a tool starts runs',
    request: {
      goal: PARTS_GOAL,
      model_name: 'test:host',
      workspace: 'isolated',
      delegation: { children: 16 },
    },
  },
  {
    name: 'a human chooses',
    request: { goal: STORY_GOAL, attempts: { ...models('line', 'late'), choose: 'human' } },
  },
  {
    name: 'an attempt delegates',
    request: {
      goal: PARTS_GOAL,
      attempts: models('boss', 'bad'),
      delegation: { children: 16 },
    },
  },
  {
    name: 'delegates, isolated',
    request: {
      goal: PARTS_GOAL,
      model_name: 'test:boss',
      workspace: 'isolated',
      delegation: { children: 16 },
    },
  },
  {
    name: 'aborted attempts',
    request: { goal: STORY_GOAL, attempts: models('endless', 'endless') },
    abortAfter: 2,
    isEndless: true,
  },
  {
    name: 'a budget for attempts',
    request: {
      goal: STORY_GOAL,
      attempts: { ...models('endless', 'endless'), choose: 'smallest' },
      max_total_tokens: 60,
    },
    isEndless: true,
  },
  {
    name: 'two levels',
    request: {
      goal: 'shell: cat a.txt c.txt d.txt',
      model_name: 'test:chief',
      workspace: 'isolated',
      delegation: { depth: 2, children: 16 },
    },
  },
  {
    name: 'aborted delegates',
    request: { goal: 'shell: false', model_name: 'test:drain', delegation: { children: 16 } },
    abortAfter: 2,
    isEndless: true,
  },
  {
    name: 'a budget for delegates',
    request: {
      goal: 'shell: false',
      model_name: 'test:drain',
      max_total_tokens: 60,
      delegation: { children: 16 },
    },
    isEndless: true,
  },
].map((plan) => ({
  ...plan,
  request: { ...plan.request, max_iterations: 'isEndless' in plan ? 200 : 8 },
}))
