import { join } from 'node:path'

import type { GoalDefinition } from '../../goal.js'
import { namedGoal } from '../command-goal.js'
import { readSmallFile } from '../small-file.js'
import { CARGO_CONFIG } from '../test-files.js'
import { unsuitable } from './unsuitable.js'
import { hasFile, packageScripts } from './workspace-facts.js'

interface Linter {
  readonly command: string
  /** Globs of its configuration, which the goal seals. */
  readonly config: readonly string[]
}

/** The linter that the workspace is set up for. */
export const lint: GoalDefinition = namedGoal(
  'lint',
  'The linter finds nothing: the script `lint`, ESLint, Ruff, Clippy or golangci-lint.',
  async (cwd) => {
    const linter = await findLinter(cwd)
    if (linter === null) {
      throw unsuitable(
        'lint',
        'no linter is set up here',
        'add a "lint" script to package.json, or use `shell: <command>`',
      )
    }
    return {
      command: linter.command,
      reporter: null,
      sealed: linter.config,
      task: 'Remove all findings of the linter, without comments that silence it.',
    }
  },
)

const ESLINT_FILES = [
  ...['js', 'mjs', 'cjs', 'ts', 'mts', 'cts'].map((ending) => `eslint.config.${ending}`),
  ...['', '.js', '.cjs', '.json', '.yml', '.yaml'].map((ending) => `.eslintrc${ending}`),
]
const ESLINT_CONFIG = ['**/eslint.config.*', '**/.eslintrc*', '**/.eslintignore']
const RUFF_FILES = ['ruff.toml', '.ruff.toml']
const RUFF_CONFIG = ['**/{.ruff,ruff}.toml', '**/pyproject.toml']
const GOLANGCI_FILES = ['yml', 'yaml', 'toml', 'json'].map((ending) => `.golangci.${ending}`)

async function findLinter(cwd: string): Promise<Linter | null> {
  if (typeof (await packageScripts(cwd))?.['lint'] === 'string') {
    return { command: 'npm run lint', config: [...ESLINT_CONFIG, ...RUFF_CONFIG] }
  }
  if (await hasFile(cwd, ESLINT_FILES)) {
    return { command: 'npx --no-install eslint .', config: ESLINT_CONFIG }
  }
  const pyproject = (await readSmallFile(join(cwd, 'pyproject.toml'))) ?? ''
  if ((await hasFile(cwd, RUFF_FILES)) || /^[ \t]*\[tool\.ruff/m.test(pyproject)) {
    return { command: 'ruff check .', config: RUFF_CONFIG }
  }
  if (await hasFile(cwd, ['Cargo.toml'])) {
    return {
      command: 'cargo clippy --all-targets -- -D warnings',
      config: [...CARGO_CONFIG, '**/{.clippy,clippy}.toml'],
    }
  }
  return (await hasFile(cwd, GOLANGCI_FILES))
    ? { command: 'golangci-lint run', config: ['**/.golangci.*'] }
    : null
}
