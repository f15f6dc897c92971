import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { GoalDefinition, GoalSpec, TestReporter } from '../goal.js'
import { configuredFiles } from './runner-files.js'
import { JS_TESTS, PYTHON_TESTS, SEALED, TEST_TREES, UNTRACKED } from './test-files.js'

/** Milliseconds that a check may take unless its goal sets another limit. */
export const DEFAULT_CHECK_TIMEOUT_MS = 300_000

/** A goal that a command verifies. */
export interface CommandGoal {
  /** A registered name, `shell`, or `text`. */
  readonly name: string
  /** The goal as the request states it. @defaultValue `name` */
  readonly goal?: string | undefined
  /** The shell command line that checks it. */
  readonly command: string
  /** The command line for people, without what only the check adds. @defaultValue `command` */
  readonly shown?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** @defaultValue 300 000 */
  readonly timeoutMs?: number | undefined
  /** The test runner that reports; null for none. @defaultValue recognised from the command */
  readonly reporter?: TestReporter | null | undefined
  /** Globs to protect besides tests, runner configuration and files that the command names. */
  readonly protected?: readonly string[] | undefined
  /** Globs of files that must neither change nor appear, besides the known configuration files. */
  readonly sealed?: readonly string[] | undefined
  /** Upper bound on the command's own time, in milliseconds. */
  readonly maxDurationMs?: number | undefined
  /** First sentence of the model's instructions; the rest describes the check. */
  readonly task?: string | undefined
}

const GOAL: OptionKinds<CommandGoal> = {
  name: 'string! a registered name, shell or text', goal: 'string',
  command: 'string! the command line that checks the goal', shown: 'string', env: 'object',
  timeoutMs: 'number', reporter: 'string|null', protected: 'array', sealed: 'array',
  maxDurationMs: 'number', task: 'string',
}

/**
 * Makes the frozen definition of a goal that a command verifies. Follows the command into npm
 * scripts, makefiles and shell scripts of the workspace `cwd`, to find out which test runner
 * reports and which files belong to the check.
 */
export async function commandGoal(goal: CommandGoal, cwd: string): Promise<GoalSpec> {
  checkOptions(goal, GOAL, 'commandGoal()')
  // Loaded when first used: a program whose goals are judged never needs them.
  const { readCheckScript } = await import('./check-script.js')
  const { TEST_RUNNERS } = await import('./reports/registry.js')
  const { command, env } = liftVariables(goal.command, goal.env ?? {})
  const script = await readCheckScript(command, cwd)
  const reporter = goal.reporter === undefined ? script.reporter : goal.reporter
  const runner = reporter === null ? null : TEST_RUNNERS[reporter]
  const needed = runner?.nodeOptions?.(script.text) ?? ''
  const options = [env['NODE_OPTIONS'] ?? '', needed].filter((part) => part !== '').join(' ')
  return {
    name: goal.name,
    goal: goal.goal ?? goal.name,
    command,
    env: options === '' ? env : { ...env, NODE_OPTIONS: options },
    timeout_ms: goal.timeoutMs ?? DEFAULT_CHECK_TIMEOUT_MS,
    success_exit_code: 0,
    reporter,
    protected: [
      ...JS_TESTS,
      ...PYTHON_TESTS,
      ...TEST_TREES,
      ...script.files,
      ...(await configuredFiles(cwd)),
      ...(goal.protected ?? []),
      ...keysPassedBy(script.text),
      ...(script.builds ? [...UNTRACKED.always, ...UNTRACKED.built] : UNTRACKED.always),
    ],
    sealed: [...SEALED, ...script.sealed, ...(goal.sealed ?? [])],
    runner: runner === null ? [] : await runner.packages(cwd),
    allow_test_changes: false,
    instructions: instruct(
      goal.task ?? 'Make the check of this workspace pass.',
      goal.shown ?? command,
      reporter,
      goal.maxDurationMs,
    ),
    ...(goal.maxDurationMs === undefined ? {} : { max_duration_ms: goal.maxDurationMs }),
  }
}

/** Keys of package.json that scripts pass on, as `$npm_package_version` does. */
function keysPassedBy(script: string): readonly string[] {
  const keys = script.matchAll(/\bnpm_package_([a-zA-Z]+)/g)
  return [...keys].map(([, key]) => `package.json#${key}`)
}

/** A goal that requests refer to by `name`; `define` gives the rest of it for a workspace. */
export function namedGoal(
  name: string,
  description: string,
  define: (cwd: string, argument: string) => Promise<Omit<CommandGoal, 'name'>>,
): GoalDefinition {
  return {
    name,
    description,
    usage: name,
    resolve: async (cwd, argument) => commandGoal({ name, ...(await define(cwd, argument)) }, cwd),
  }
}

/**
 * Moves variables that our reporters set as well from the command line (`PYTHONPATH=src pytest`)
 * into the environment, where both values can be joined.
 */
function liftVariables(
  line: string,
  given: Readonly<Record<string, string>>,
): { readonly command: string; readonly env: Record<string, string> } {
  const env = { ...given }
  const command = line.trim()
  // Single commands only: in `A=1 x && y` the variable does not reach y.
  const separator = Math.max(...[...';&|\n'].map((sign) => command.lastIndexOf(sign)))
  let at = 0
  while (at > separator) {
    LIFTED.lastIndex = at
    const match = LIFTED.exec(command)
    if (match === null) break
    env[match[1]!] = match[2] ?? match[3] ?? match[4] ?? ''
    at += match[0].length
  }
  return { command: command.slice(at), env }
}

const LIFTED: RegExp =
  /(NODE_OPTIONS|PYTHONPATH|PYTEST_ADDOPTS)=(?:"([^"$`\\]*)"|'([^']*)'|([\w./:=,@+-]*))\s+(?=\S)/y

function instruct(
  task: string,
  command: string,
  reporter: TestReporter | null,
  maxDurationMs: number | undefined,
): string {
  const lines = [
    task,
    `The goal is met when this command, run in the workspace, ends with exit code 0: ${command}`,
  ]
  if (maxDurationMs !== undefined) lines.push(`It must take no longer than ${maxDurationMs} ms.`)
  if (reporter !== null) {
    lines.push(
      'Every test that exists now must still be there and pass; none may be skipped or removed.',
    )
  }
  lines.push(
    'Change the code, not the check: tests, test configuration, package.json scripts and the ' +
      'scripts that the command runs are compared with what they were. A change to them fails ' +
      'the goal. New tests are welcome.',
  )
  return lines.join('\n')
}
