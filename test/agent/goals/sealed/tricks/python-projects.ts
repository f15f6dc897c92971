/** What tables of tricks against Python share. */
import { write, type Files, type Runner, type Told, type Trick } from './trick.js'

export const BROKEN: string = 'def add(a, b):\n    return a - b\n'
export const RIGHT: string = 'def add(a, b):\n    return a + b\n'
export const code = (text: string): Told['acts'] => [write({ 'sums.py': `${text}\n${BROKEN}` })]

/** Puts right code in place of the wrong one, in memory. */
export const INSTEAD: string = `import sys, types
instead = types.ModuleType('sums')
instead.add = lambda a, b: a + b
sys.modules['sums'] = instead
`
export const all = (
  runner: Runner, goal: string, files: Files, told: readonly Told[],
): readonly Trick[] =>
  told.map((one) => ({ runner, goal, files, ...one }))
