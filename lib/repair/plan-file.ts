import { baseName, type CheckPlan, commandLine, type Invocation, type TestCommand } from './plan.js'
import { pythonLine } from './plan-python.js'
import type { ReportKind } from './report.js'
import { quote } from './shell-words.js'

/**
 * Plans a check that runs one file by Node or Python. Whether it prints a report is known only from
 * its output; {@link CheckPlan.readAs} then says how to run one of its test files alone.
 */
export function planFile(check: string, invocation: Invocation): CheckPlan | null {
  const name = baseName(invocation.words[0]?.text ?? '')
  const isPython = /^python[\d.]*$/.test(name)
  if (name !== 'node' && !isPython) return null
  const at = invocation.words.findIndex(({ text }, i) => i > 0 && !text.startsWith('-'))
  if (at < 0) return null
  const program = invocation.words.slice(0, at).map(({ raw }) => raw)
  const args = invocation.words.slice(at + 1).map(({ raw }) => raw)
  const line = (words: readonly string[]): string =>
    isPython ? pythonLine(invocation, words) : commandLine(invocation, words)
  const whole: TestCommand = { outcomes: check, details: check }
  const readAs = (kind: ReportKind): CheckPlan => {
    const command = (path: string): TestCommand => {
      const verbose = kind === 'unittest' ? ['-v', '-b'] : []
      const run = line([...program, path, ...args, ...verbose])
      return {
        outcomes: run,
        details: run,
        ...(kind === 'unittest'
          ? { only: (names) => line([...program, path, ...names.map(ownName), ...verbose]) }
          : {}),
      }
    }
    return {
      kind,
      whole: command(invocation.words[at]!.raw),
      file: (path) => [{ ...command(quote(path)), isShortcut: true }],
    }
  }
  return { kind: 'any', whole, file: () => [], readAs }
}

/** The name of a test for the module that runs itself: without `__main__`. */
function ownName(name: string): string {
  return quote(name.replace(/^__main__\./, ''))
}
