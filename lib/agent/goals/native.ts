import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { GoalDefinition } from '../goal.js'
import { commandGoal } from './command-goal.js'
import { unsuitable } from './javascript.js'
import { firstFile, makeTargets, packageScripts } from './workspace-facts.js'

/** `make test`, or another target. */
export const makeTest: GoalDefinition = {
  name: 'make-test',
  description: '`make test` succeeds (or another target: `make-test: check`).',
  usage: 'make-test',
  async resolve(cwd, argument) {
    const target = argument === '' ? 'test' : argument
    const targets = await makeTargets(cwd)
    if (targets === null)
      throw unsuitable('make-test', 'there is no Makefile here', 'start the run beside it')
    if (argument === '' && !targets.includes('test')) {
      throw unsuitable(
        'make-test',
        'the Makefile has no target "test"',
        'name one: `make-test: <target>`',
      )
    }
    return commandGoal(
      {
        name: 'make-test',
        command: `make ${target}`,
        task: `Make \`make ${target}\` succeed.`,
      },
      cwd,
    )
  },
}

/** Cargo's tests. Unit tests live in the sources and cannot be told from them by file. */
export const cargoTest: GoalDefinition = {
  name: 'cargo-test',
  description: 'All tests of `cargo test` pass.',
  usage: 'cargo-test',
  async resolve(cwd, argument) {
    if ((await firstFile(cwd, ['Cargo.toml'])) === null) {
      throw unsuitable('cargo-test', 'there is no Cargo.toml here', 'start the run beside it')
    }
    return commandGoal(
      {
        name: 'cargo-test',
        // All test programs, so that the tests of every one are known from the first check on.
        command: `cargo test --no-fail-fast ${argument}`.trim(),
        env: { CARGO_TERM_COLOR: 'never' },
        timeoutMs: 600_000,
        reporter: 'cargo',
        protected: ['!**/target/**'],
        sealed: CARGO_CONFIG,
        task: 'Make the tests pass.',
      },
      cwd,
    )
  },
}

const CARGO_CONFIG: readonly string[] = [
  '**/Cargo.toml',
  '**/.cargo/config{,.toml}',
  'rust-toolchain{,.toml}',
]

/** Go's tests of all packages. */
export const goTest: GoalDefinition = {
  name: 'go-test',
  description: 'All tests of `go test ./...` pass.',
  usage: 'go-test',
  async resolve(cwd, argument) {
    if ((await firstFile(cwd, ['go.mod', 'go.work'])) === null) {
      throw unsuitable('go-test', 'there is no go.mod here', 'start the run beside it')
    }
    return commandGoal(
      {
        name: 'go-test',
        command: `go test -count=1 ${argument === '' ? './...' : argument}`,
        timeoutMs: 600_000,
        reporter: 'go',
        protected: ['**/*_test.go'],
        sealed: ['go.work'],
        task: 'Make the tests pass.',
      },
      cwd,
    )
  },
}

interface Linter {
  readonly command: string
  readonly config: readonly string[]
}

/** The linter that the workspace is set up for. */
export const lint: GoalDefinition = {
  name: 'lint',
  description:
    'The linter finds nothing: the script `lint`, ESLint, Ruff, Clippy or golangci-lint.',
  usage: 'lint',
  async resolve(cwd) {
    const linter = await findLinter(cwd)
    if (linter === null) {
      throw unsuitable(
        'lint',
        'no linter is set up here',
        'add a "lint" script to package.json, or use `shell: <command>`',
      )
    }
    return commandGoal(
      {
        name: 'lint',
        command: linter.command,
        reporter: null,
        sealed: linter.config,
        task: 'Remove all findings of the linter, without comments that silence it.',
      },
      cwd,
    )
  },
}

const ESLINT = ['js', 'mjs', 'cjs', 'ts', 'mts', 'cts'].map((ending) => `eslint.config.${ending}`)
const ESLINT_OLD = ['', '.js', '.cjs', '.json', '.yml', '.yaml'].map(
  (ending) => `.eslintrc${ending}`,
)
const RUFF = ['ruff.toml', '.ruff.toml']
const GOLANGCI = ['yml', 'yaml', 'toml', 'json'].map((ending) => `.golangci.${ending}`)

async function findLinter(cwd: string): Promise<Linter | null> {
  const eslint = ['**/eslint.config.*', '**/.eslintrc*', '**/.eslintignore']
  const ruff = ['**/{.ruff,ruff}.toml', '**/pyproject.toml']
  const scripts = await packageScripts(cwd)
  if (typeof scripts?.['lint'] === 'string')
    return { command: 'npm run lint', config: [...eslint, ...ruff] }
  if ((await firstFile(cwd, [...ESLINT, ...ESLINT_OLD])) !== null) {
    return { command: 'npx --no-install eslint .', config: eslint }
  }
  const pyproject = await readFile(join(cwd, 'pyproject.toml'), 'utf8').catch(() => '')
  if ((await firstFile(cwd, RUFF)) !== null || /^\s*\[tool\.ruff/m.test(pyproject)) {
    return { command: 'ruff check .', config: ruff }
  }
  if ((await firstFile(cwd, ['Cargo.toml'])) !== null) {
    return {
      command: 'cargo clippy --all-targets -- -D warnings',
      config: [...CARGO_CONFIG, '**/{.clippy,clippy}.toml'],
    }
  }
  if ((await firstFile(cwd, GOLANGCI)) !== null) {
    return { command: 'golangci-lint run', config: ['**/.golangci.*'] }
  }
  return null
}
