import { GoalError } from '../../errors.js'
import type { GoalDefinition } from '../../goal.js'
import { commandGoal } from '../command-goal.js'
import { unsuitable } from './unsuitable.js'

export const shell: GoalDefinition = {
  name: 'shell',
  description:
    'A command ends with exit code 0; known test runners in it are compared by test names.',
  usage: 'shell: npm run check',
  async resolve(cwd, argument) {
    if (argument === '') {
      throw unsuitable('shell', 'no command is given', 'write `shell: <command>`')
    }
    return commandGoal({ name: 'shell', command: argument, task: 'Make the command succeed.' }, cwd)
  },
}

/** Milliseconds of each unit. */
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  m: 60_000,
  min: 60_000,
}

/** A command line with an upper bound on its time. */
export const perf: GoalDefinition = {
  name: 'perf',
  description: 'A command ends with exit code 0 within a time, best of three runs.',
  usage: 'perf: node bench.js < 500ms',
  async resolve(cwd, argument) {
    const sign = argument.lastIndexOf('<')
    const command = argument.slice(0, Math.max(sign, 0)).trim()
    const time = argument.slice(sign + 1).trim()
    const [, amount, unit] = /^(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min)$/.exec(time) ?? []
    const limit = Number(amount) * (UNITS[unit ?? ''] ?? 0)
    if (command === '' || !(limit > 0)) {
      throw new GoalError(
        'unsuitable',
        'perf: write a command and a time, as in `perf: node bench.js < 500ms`',
      )
    }
    return commandGoal(
      {
        name: 'perf',
        command,
        maxDurationMs: limit,
        timeoutMs: Math.max(120_000, 4 * limit),
        task: 'Make the command faster, with the same results.',
      },
      cwd,
    )
  },
}
