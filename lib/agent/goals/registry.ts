import { nearestName } from '../../internal/text.js'
import { GoalError } from '../errors.js'
import type { GoalDefinition, GoalSpec } from '../goal.js'
import { commandGoal } from './command-goal.js'
import type { GoalRegistry, ResolveOptions } from './goal-registry.js'
import { judgedGoal } from './judged-goal.js'
import { RESULT_GOAL } from './result-goal.js'
import { autoGoal } from './shipped/auto.js'
import { cargoTest } from './shipped/cargo.js'
import { goTest } from './shipped/go.js'
import { bunTest, nodeTest, npmTest, typeCheck } from './shipped/javascript.js'
import { lint } from './shipped/lint.js'
import { makeTest } from './shipped/make.js'
import { pytest, unittest } from './shipped/python.js'
import { result } from './shipped/result.js'
import { perf, shell } from './shipped/shell.js'

/** In the order in which they are listed. */
const CHOICES = {
  npmTest, nodeTest, pytest, unittest, makeTest, cargoTest, goTest, bunTest, typeCheck, lint,
}
const SHIPPED = [autoGoal(CHOICES), ...Object.values(CHOICES), shell, perf, result]

/**
 * Makes a registry of the shipped goals and a host's own.
 *
 * @throws TypeError when a name does not have the form `lower-case-words`, or is taken.
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
      const given = JSON.stringify(goal.name)
      throw new TypeError(`a goal's name must be lower-case words joined by hyphens, got ${given}`)
    }
    if (typeof goal.resolve !== 'function') {
      throw new TypeError(`goal ${goal.name} needs resolve, the function that defines its check`)
    }
    if (goals.has(goal.name)) {
      throw new TypeError(`the goal name ${JSON.stringify(goal.name)} is taken; choose another`)
    }
    goals.set(goal.name, goal)
  }
  return {
    list: () =>
      [...goals.values()].map(({ name, description, usage }) => ({ name, description, usage })),
    resolve: (goal, cwd, options = {}) => resolveGoal(goals, goal, cwd, options),
  }
}

/**
 * Returns a function that finds the command of a goal: the command line of `shell`, or the goal
 * itself for other names, whose commands contain its argument or run scripts of the folder. Null
 * for free text, and for a goal that a result meets.
 */
export function commandOfGoal(goals: Pick<GoalRegistry, 'list'>): (goal: string) => string | null {
  const names = new Set(goals.list().map(({ name }) => name))
  return (goal) => {
    const { name, argument } = nameIn(goal)
    if (name === RESULT_GOAL || !names.has(name)) return null
    return name === shell.name ? argument : goal.trim()
  }
}

/** The name with which a goal begins, empty for other text, and what follows `name:`. */
function nameIn(goal: string): { readonly name: string; readonly argument: string } {
  const match = /^([a-z][a-z0-9-]*)\s*(?::(.*))?$/s.exec(goal.trim())
  return { name: match?.[1] ?? '', argument: (match?.[2] ?? '').trim() }
}

async function resolveGoal(
  goals: ReadonlyMap<string, GoalDefinition>,
  goal: string,
  cwd: string,
  { check = null, judge = null, allowTestChanges = false }: ResolveOptions,
): Promise<GoalSpec> {
  const text = goal.trim()
  const { name, argument } = nameIn(text)
  const named = goals.get(name)
  let spec: GoalSpec
  if (named !== undefined) {
    if (check !== null) {
      throw new GoalError(
        'unsuitable',
        `the goal ${named.name} has its own check; leave \`check\` out`,
      )
    }
    spec = await named.resolve(cwd, argument)
  } else if (check !== null && check.trim() !== '') {
    const command = check.trim()
    spec = await commandGoal({ name: 'text', goal: text, command, task: text }, cwd)
  } else if (isName(text, [...goals.keys()], judge !== null)) {
    throw unknownGoal(text, [...goals.keys()])
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

/** Is a goal meant as a name? A word that a model may judge is one only if it is spelt like it. */
function isName(text: string, known: readonly string[], isJudged: boolean): boolean {
  if (/^[a-z][a-z0-9]*(-[a-z0-9]+)+$/.test(text)) return true
  if (!/^[\w-]+$/.test(text)) return false
  const meant = nearestName(text, known)
  return meant !== undefined && (!isJudged || lettersOf(meant) === lettersOf(text))
}

/** `node-test` and `NodeTest` have the same. */
function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '')
}

function unknownGoal(text: string, known: readonly string[]): GoalError {
  const meant = nearestName(text, known)
  const hint =
    meant === undefined ? `known goals are ${known.join(', ')}` : `did you mean ${meant}?`
  return new GoalError('unknown', `unknown goal ${text}; ${hint}`)
}
