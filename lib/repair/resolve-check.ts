import { baseName, type Invocation } from './plan.js'
import { quote, shellCommands, type ShellWord } from './shell-words.js'

/** Scripts that call each other end here. */
const MAX_DEPTH = 8

/** What a check runs, one simple command after the other. */
export interface ResolvedCheck {
  readonly commands: readonly Invocation[]
  /** Linters, type checks and reports: parts that run no tests, as written. */
  readonly leftOut: readonly string[]
}

const LINTERS: ReadonlySet<string> = new Set([
  'eslint', 'standard', 'xo', 'semistandard', 'ts-standard', 'tslint', 'jshint', 'jscs',
  'prettier', 'biome', 'oxlint', 'dprint', 'tsd', 'attw', 'publint', 'knip', 'depcheck',
  'dependency-check', 'markdownlint', 'markdownlint-cli2', 'remark', 'cspell', 'codespell',
  'ls-lint', 'lockfile-lint', 'size-limit', 'commitlint', 'installed-check', 'aud', 'auditjs',
  'flake8', 'black', 'ruff', 'mypy', 'pylint', 'pyright', 'isort', 'echo', 'true', 'codecov',
  'coveralls', 'npm-run-all', 'evalmd', 'ls-engines', 'sherif', 'svelte-check', 'es-check',
  'attest', 'license-checker', 'linthtml', 'stylelint', 'updtr', 'ncu', 'npx-audit',
])
const LINT_SCRIPTS = new RegExp(
  '^(pre|post)?(lint|eslint|standard|style|format|prettier|type-?check|types?|tsc|audit|coverage' +
    '|cov|spell|size|docs?|check[-:](style|types|format|lint))([:.-].*)?$',
)
/** Programs that run another one and change nothing about its tests. */
const WRAPPERS = new Set(['nyc', 'c8', 'cross-env', 'cross-env-shell', 'env', 'time', 'nice'])
/** Programs that may follow a wrapper and its options. */
const PROGRAMS = new RegExp(
  '^(node|tsx|mocha|_mocha|jest|vitest|ava|tap|tape|npm|npx|yarn|pnpm' +
    '|python[\\d.]*|pytest|py\\.test|cross-env)$',
)

/**
 * Takes a check apart into the commands that it runs: scripts of package.json are replaced by what
 * they run, wrappers by what they wrap. Null when it does more than to run commands in turn.
 */
export function resolveCheck(
  check: string,
  scripts: Readonly<Record<string, string>>,
): ResolvedCheck | null {
  const commands: Invocation[] = []
  const leftOut: string[] = []
  const add = (
    line: string,
    more: readonly ShellWord[],
    usesPackages: boolean,
    depth: number,
  ): boolean => {
    const parts = depth > MAX_DEPTH ? null : shellCommands(line)
    if (parts === null) return false
    return parts.every((words, at) =>
      addCommand(at === parts.length - 1 ? [...words, ...more] : words, usesPackages, depth),
    )
  }
  const addCommand = (
    words: readonly ShellWord[],
    usesPackages: boolean,
    depth: number,
  ): boolean => {
    const invocation = unwrap({ env: [], words, usesPackages })
    if (invocation === null) return false
    const script = scriptOf(invocation.words)
    const name = script?.name ?? ''
    if (isLinter(invocation.words) || (script !== null && LINT_SCRIPTS.test(name))) {
      leftOut.push(words.map(({ raw }) => raw).join(' '))
      return true
    }
    if (script === null || !Object.hasOwn(scripts, name)) {
      commands.push(invocation)
      return true
    }
    const from = commands.length
    for (const part of [`pre${name}`, name, `post${name}`]) {
      if (!Object.hasOwn(scripts, part)) continue
      if (part !== name && LINT_SCRIPTS.test(part)) leftOut.push(part)
      else if (!add(scripts[part]!, part === name ? script.args : [], true, depth + 1)) return false
    }
    for (let at = from; at < commands.length; at++) {
      const inner = commands[at]!
      commands[at] = { ...inner, env: [...invocation.env, ...inner.env] }
    }
    return true
  }
  const plain = check.trim().replace(/\s2>&1$/, '')
  return add(plain, [], false, 0) && commands.length > 0 ? { commands, leftOut } : null
}

/** Removes wrappers and settings of the environment from the front; null when nothing is left. */
function unwrap(invocation: Invocation): Invocation | null {
  const settings = [...invocation.env]
  let words = invocation.words
  let { usesPackages } = invocation
  for (;;) {
    const first = words[0]
    if (first === undefined) return null
    const setting = /^(\w+)=([^]*)$/.exec(first.text)
    const name = baseName(first.text)
    if (setting !== null) {
      settings.push(`${setting[1]}=${quote(setting[2]!)}`)
      words = words.slice(1)
    } else if (WRAPPERS.has(name)) {
      const next = words.findIndex(
        ({ text }, at) =>
          at > 0 && (PROGRAMS.test(baseName(text)) || (/^\w+=/.test(text) && name !== 'nyc')),
      )
      if (next < 0) return { env: settings, words, usesPackages }
      words = words.slice(next)
    } else {
      const starts = packageRunner(words)
      if (starts === 0) return { env: settings, words, usesPackages }
      usesPackages = true
      words = words.slice(starts)
    }
  }
}

const QUIET_STARTS = /^(--|-y|--yes|--no|--no-install|--offline|--prefer-offline|-s|--silent)$/

/** Number of words that only say that a program of the project's packages is run; 0 for none. */
function packageRunner(words: readonly ShellWord[]): number {
  const [first, second] = words.map(({ text }) => text)
  let at = 0
  if (first === 'npx' || first === 'bunx') at = 1
  else if (/^(npm|pnpm|yarn)$/.test(first ?? '') && /^(exec|x|dlx)$/.test(second ?? '')) at = 2
  else if (first === 'yarn' && PROGRAMS.test(second ?? '')) return 1
  else return 0
  while (QUIET_STARTS.test(words[at]?.text ?? '')) at++
  return at < words.length && !words[at]!.text.startsWith('-') ? at : 0
}

/** The script that `npm test`, `npm run x`, `yarn x` or `pnpm x` runs, and its arguments. */
function scriptOf(
  words: readonly ShellWord[],
): { readonly name: string; readonly args: readonly ShellWord[] } | null {
  const program = baseName(words[0]?.text ?? '')
  if (!['npm', 'pnpm', 'yarn'].includes(program)) return null
  const isQuiet = ({ text }: ShellWord): boolean => /^(-s|--silent|--no-\w+|-q|--quiet)$/.test(text)
  let at = 1
  const skip = (): void => {
    while (at < words.length && isQuiet(words[at]!)) at++
  }
  skip()
  const command = words[at++]?.text ?? ''
  let name: string | undefined
  if (/^(test|t|tst)$/.test(command)) name = 'test'
  else if (/^(run|run-script)$/.test(command)) {
    skip()
    name = words[at++]?.text
  } else if (program !== 'npm' && !command.startsWith('-')) name = command
  if (name === undefined || name === '') return null
  const rest = words.slice(at).filter((word) => !isQuiet(word))
  const separator = rest.findIndex(({ text }) => text === '--')
  // npm passes on only what follows a separator.
  if (program === 'npm') return { name, args: separator < 0 ? [] : rest.slice(separator + 1) }
  return { name, args: rest.filter((_, i) => i !== separator) }
}

function isLinter(words: readonly ShellWord[]): boolean {
  const name = baseName(words[0]!.text)
  const args = words.map(({ text }) => text)
  if (LINTERS.has(name)) return true
  if (name === 'tsc') return args.includes('--noEmit')
  if (name === 'npm' || name === 'pnpm' || name === 'yarn') return args.includes('audit')
  return name === 'node' && args.includes('--check')
}

/** A command that is no part of the tests, kept because the tests may need what it does. */
export function preparation({ env, words, usesPackages }: Invocation): string {
  const path = usesPackages ? 'PATH="$PWD/node_modules/.bin:$PATH" ' : ''
  return `${path}${[...env, ...words.map(({ raw }) => raw)].join(' ')} >/dev/null 2>&1`
}

