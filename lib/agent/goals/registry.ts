import { GoalError } from '../errors.js'
import type { GoalDefinition, GoalSpec } from '../goal.js'
import type { ModelPrices } from '../usage.js'
import { auto } from './detect.js'
import { bunTest, nodeTest, npmTest, typeCheck } from './javascript.js'
import { cargoTest, goTest, lint, makeTest } from './native.js'
import { pytest, unittest } from './python.js'
import { judgedGoal } from './judge-evidence.js'
import { perf, shell, textGoal } from './shell.js'

/** A goal as it is offered in forms. */
export interface ListedGoal {
  readonly name: string
  readonly description: string
  readonly usage: string
}

/** What a request says about its goal besides the goal itself. */
export interface ResolveOptions {
  /** Command that verifies a free-text goal; null or omitted when there is none. */
  readonly check?: string | null | undefined
  /** The model that judges free text without a check; null or omitted when there is none. */
  readonly judge?:
    { readonly model: string; readonly prices: ModelPrices | null } | null | undefined
  /** The host's choice: the goal may be met although tests were changed. @defaultValue false */
  readonly allowTestChanges?: boolean | undefined
}

/** The goals that a host offers. */
export interface GoalRegistry {
  /** All goals, shipped ones first. */
  list(): readonly ListedGoal[]
  /**
   * Makes the frozen definition of a goal for a workspace: of a registered name (`node-test`), a
   * name with an argument (`shell: npm run check`), or free text with a check command or a judge.
   *
   * @throws {@link GoalError} `unsuitable` when the workspace has no such check, `not_verifiable`
   * for free text without both, `unknown` for what can only be a mistyped name.
   */
  resolve(goal: string, cwd: string, options?: ResolveOptions): Promise<GoalSpec>
}

const SHIPPED: readonly GoalDefinition[] = [
  auto,
  npmTest,
  nodeTest,
  pytest,
  unittest,
  makeTest,
  cargoTest,
  goTest,
  bunTest,
  typeCheck,
  lint,
  shell,
  perf,
]

/**
 * Makes a registry of the shipped goals and a host's own.
 *
 * @throws TypeError when a name is not of the form `lower-case-words`, or is taken.
 * @example
 * ```ts
 * const goals = goalRegistry()
 * const spec = await goals.resolve('shell: npm run check', '/srv/project')
 * ```
 */
export function goalRegistry(custom: readonly GoalDefinition[] = []): GoalRegistry {
  const goals = new Map(SHIPPED.map((goal) => [goal.name, goal]))
  for (const goal of custom) {
    if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(goal.name)) {
      throw new TypeError(
        `a goal's name is lower-case words joined by hyphens, got ${JSON.stringify(goal.name)}`,
      )
    }
    if (goals.has(goal.name))
      throw new TypeError(`there is a goal ${JSON.stringify(goal.name)} already`)
    goals.set(goal.name, goal)
  }
  return {
    list: () =>
      [...goals.values()].map(({ name, description, usage }) => ({ name, description, usage })),
    resolve: (goal, cwd, options = {}) => resolveGoal(goals, goal, cwd, options),
  }
}

async function resolveGoal(
  goals: ReadonlyMap<string, GoalDefinition>,
  goal: string,
  cwd: string,
  { check = null, judge = null, allowTestChanges = false }: ResolveOptions,
): Promise<GoalSpec> {
  const text = goal.trim()
  const colon = /^([a-z][a-z0-9-]*)(?:\s*:\s*(.*))?$/s.exec(text)
  const named = colon === null ? undefined : goals.get(colon[1]!)
  let spec: GoalSpec
  if (named !== undefined) {
    if (check !== null) {
      throw new GoalError(
        'unsuitable',
        `the goal ${named.name} brings its own check; leave \`check\` out`,
      )
    }
    spec = await named.resolve(cwd, (colon![2] ?? '').trim())
  } else if (check !== null && check.trim() !== '') {
    spec = await textGoal(text, check.trim(), cwd)
  } else if (/^[a-z][a-z0-9]*(-[a-z0-9]+)+$/.test(text)) {
    throw new GoalError(
      'unknown',
      `there is no goal ${text}; there are ${[...goals.keys()].join(', ')}`,
    )
  } else if (judge !== null) {
    spec = judgedGoal(text, judge.model, judge.prices)
  } else {
    throw new GoalError(
      'not_verifiable',
      'a goal in free text needs a way to verify it: give `check`, a command that succeeds once ' +
        `the goal is met, or name one of these goals: ${[...goals.keys()].join(', ')}`,
    )
  }
  return { ...spec, goal, allow_test_changes: spec.allow_test_changes || allowTestChanges }
}
