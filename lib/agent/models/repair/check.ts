import type { ReportKind } from './report.js'

/** How to run the goal's check so that its report can be parsed. Commands are shell lines. */
export interface CheckPlan {
  readonly kind: ReportKind
  readonly whole: TestCommand
  /**
   * Runs the tests of one file, the fastest way first; empty when the check cannot be limited to a
   * file.
   */
  readonly file: (path: string) => readonly TestCommand[]
}

/** Two ways to run the same tests: for their outcomes only, and with all details. */
export interface TestCommand {
  readonly outcomes: string
  readonly details: string
  /** It omits something, so it is valid only if the outcomes stay the same. */
  readonly isShortcut?: boolean
  /** Runs single tests by name, for their outcomes; absent where that saves no time. */
  readonly only?: (names: readonly string[]) => string
}

const VALUE_FLAGS: ReadonlySet<string> = new Set([
  '--import',
  '--require',
  '-r',
  '--loader',
  '--experimental-loader',
  '--conditions',
  '-C',
  '--env-file',
  '--test-name-pattern',
  '--test-reporter',
  '--test-reporter-destination',
  '--test-concurrency',
  '--test-timeout',
  '--test-shard',
])

/**
 * Limits the CPU time of each process that a command starts, since a patch can make a loop endless.
 * Unlike a timeout, this does not depend on the load of the machine.
 */
export function limited(command: string, cpuSeconds: number): string {
  return `ulimit -t ${cpuSeconds}; ${command}`
}

/**
 * Runs tests after a change to one file. Python detects a stale compiled file only by size and
 * time in seconds, so it could run old code after two quick changes: the file is deleted.
 */
export function afterChange(path: string, command: string): string {
  if (!path.endsWith('.py')) return command
  const parts = path.split('/')
  const folder = [...parts.slice(0, -1), '__pycache__'].join('/')
  return `rm -f ${quote(`${folder}/${parts.at(-1)!.slice(0, -3)}`)}.*.pyc; ${command}`
}

/** Appends the CPU time of a command to its output, and keeps its exit code. */
export function timed(command: string): string {
  return `${command}; code=$?; times; exit $code`
}

/** The seconds that {@link timed} appended to an output, or null. */
export function parseTimes(output: string): number | null {
  const found = /(\d{1,9})m([\d.]{1,9})s (\d{1,9})m([\d.]{1,9})s$/.exec(output.trimEnd())
  if (found === null) return null
  const [user, system] = [
    Number(found[1]) * 60 + Number(found[2]),
    Number(found[3]) * 60 + Number(found[4]),
  ]
  return user + system
}

/** Quotes a word for the shell if necessary. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`
}

/** Splits a shell line into words; null when it is more than one simple command. */
function shellWords(line: string): string[] | null {
  const words: string[] = []
  let word: string | null = null
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!
    if (char === "'" || char === '"') {
      const close = line.indexOf(char, at + 1)
      if (close < 0) return null
      const inner = line.slice(at + 1, close)
      if (char === '"' && /[$`\\]/.test(inner)) return null
      word = (word ?? '') + inner
      at = close
    } else if (char === ' ' || char === '\t') {
      if (word !== null) words.push(word)
      word = null
    } else if (/[|&;<>()$`\\*?[\]{}~\n#!]/.test(char)) return null
    else word = (word ?? '') + char
  }
  if (word !== null) words.push(word)
  return words
}

/** Recognizes a check command. `scripts` are those of package.json, for `npm test`. */
export function planCheck(check: string, scripts: Readonly<Record<string, string>>): CheckPlan {
  const words = shellWords(check.trim().replace(/\s2>&1$/, ''))
  const script = words === null ? null : npmScript(words)
  if (script !== null && Object.hasOwn(scripts, script)) {
    const resolved = shellWords(scripts[script]!)
    if (resolved !== null && npmScript(resolved) === null) {
      const plan = planWords(resolved)
      if (plan !== null) return plan
    }
  }
  const plan = words === null ? null : planWords(words)
  if (plan !== null) return plan
  return exitCodeOnly(check)
}

/** A plan for a check without a report: only its exit code counts. */
export function exitCodeOnly(check: string): CheckPlan {
  return { kind: 'any', whole: { outcomes: check, details: check }, file: () => [] }
}

/** Name of the script that `npm test`, `npm run x`, `yarn x` or `pnpm x` runs, or null. */
function npmScript(words: readonly string[]): string | null {
  const [program, ...rest] = words.filter((word) => !/^(-s|--silent|--no-\w+)$/.test(word))
  if (!['npm', 'pnpm', 'yarn'].includes(program ?? '')) return null
  if (rest[0] === 'test' || rest[0] === 't') return rest.length === 1 ? 'test' : null
  return rest[0] === 'run' && rest.length === 2 ? rest[1]! : null
}

function planWords(words: readonly string[]): CheckPlan | null {
  const settings = words.findIndex((word) => !/^\w+=/.test(word))
  const env = words.slice(0, settings).map((word) => {
    const [name, ...value] = word.split('=')
    return `${name}=${quote(value.join('='))}`
  })
  const command = words.slice(settings)
  return planNodeTest(env, command) ?? planPython(env, command)
}

function planNodeTest(env: readonly string[], words: readonly string[]): CheckPlan | null {
  const program = (words[0] === 'npx' ? words[1] : words[0]) ?? ''
  const name = program.split('/').at(-1)
  if ((name !== 'node' && name !== 'tsx') || !words.includes('--test')) return null
  const flags: string[] = []
  const files: string[] = []
  const rest = words.slice(words[0] === 'npx' ? 2 : 1)
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at]!
    if (!word.startsWith('-')) {
      files.push(word)
      continue
    }
    const value = VALUE_FLAGS.has(word) ? rest[++at] : undefined
    const dropped = /^--test-reporter|^--experimental-test-coverage|^--watch|^--test-only/.test(
      word,
    )
    if (word === '--test' || dropped) continue
    flags.push(quote(word), ...(value === undefined ? [] : [quote(value)]))
  }
  const start = words[0] === 'npx' ? 'npx ' : ''
  const run = (args: readonly string[]): string =>
    [...env, `${start}${quote(program)}`, ...flags, '--test-reporter=tap', ...args.map(quote)].join(
      ' ',
    )
  // The heap is limited as well, since an endless loop often fills an array.
  const bound = `export NODE_OPTIONS="$NODE_OPTIONS --max-old-space-size=768"; `
  const line = (args: readonly string[]): string => `${bound}${run(args)} 2>&1`
  const filter = ` | grep -E '^ *(not )?ok [0-9]|^ *# Subtest: |^ *(  location|  failureType): '`
  return {
    kind: 'tap',
    whole: { outcomes: line(['--test', ...files]) + filter, details: line(['--test', ...files]) },
    // A test file run directly reports as well, and saves the runner's process.
    file: (path) =>
      (name === 'node' ? [[path], ['--test', path]] : [['--test', path]]).map((args) => ({
        outcomes: line(args) + filter,
        details: line(args),
      })),
  }
}

function planPython(env: readonly string[], words: readonly string[]): CheckPlan | null {
  const direct = /^(pytest|py\.test)$/.test(words[0]?.split('/').at(-1) ?? '')
  const isPython = /^python[\d.]*$/.test(words[0]?.split('/').at(-1) ?? '')
  const module = direct ? 'pytest' : isPython && words[1] === '-m' ? words[2] : undefined
  if (module !== 'pytest' && module !== 'unittest') return null
  const rest = words.slice(direct ? 1 : 3)
  const program = words.slice(0, direct ? 1 : 3).map(quote)
  const settings = [...env, 'PYTHONDONTWRITEBYTECODE=1', 'COLUMNS=400']
  const line = (args: readonly string[]): string =>
    `ulimit -v 4000000; ${[...settings, ...program, ...args].join(' ')} 2>&1`
  return module === 'pytest' ? planPytest(line, rest) : planUnittest(line, rest)
}

function planPytest(line: (args: readonly string[]) => string, rest: readonly string[]): CheckPlan {
  const flags = rest.filter(
    (word) =>
      word.startsWith('-') &&
      !/^-(x|q+|v+|s|rA)$|^--(exitfirst|maxfail|tb|quiet|verbose|cov)/.test(word),
  )
  const files = rest.filter((word) => !word.startsWith('-'))
  const run = (targets: readonly string[], trace: string): string =>
    line([
      ...flags.map(quote),
      '-q',
      '-rA',
      '--color=no',
      `--tb=${trace}`,
      '-p',
      'no:cacheprovider',
      ...targets.map(quote),
    ])
  const lines =
    '^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) |^[0-9]+ (passed|failed|error|skipped)'
  const filter = ` | grep -E '${lines}'`
  return {
    kind: 'pytest',
    whole: { outcomes: run(files, 'no') + filter, details: run(files, 'short') },
    // Plugins that the tests do not need can take ten times as long as the tests.
    file: (path) =>
      ['PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 ', ''].map((start) => ({
        outcomes: withStart(start, run([path], 'no')) + filter,
        details: withStart(start, run([path], 'short')),
        isShortcut: start !== '',
        only: (names) => withStart(start, run(names, 'no')) + filter,
      })),
  }
}

/** Inserts `start` before the program of a line that begins with limits. */
function withStart(start: string, line: string): string {
  return line.replace(/^(ulimit [^;]*; )/, (limits) => `${limits}${start}`)
}

function planUnittest(
  line: (args: readonly string[]) => string,
  rest: readonly string[],
): CheckPlan {
  const flags = rest.filter(
    (word) => !/^-(v|q|f|b|vv)$|^--(verbose|quiet|failfast|buffer)$/.test(word),
  )
  const discovers = flags.length === 0 || flags[0] === 'discover'
  const lines =
    '^ *[A-Za-z_0-9]+ \\([A-Za-z_0-9.]+\\)| \\.\\.\\. [a-zA-Z]|^(FAIL|ERROR): |^Ran '
  const filter = ` | grep -E '${lines}'`
  const whole = line([...flags.map(quote), '-v', '-b'])
  return {
    kind: 'unittest',
    whole: { outcomes: whole + filter, details: whole },
    file: (path) => {
      const base = path.split('/').at(-1)!
      const narrowed = discovers
        ? [...without(flags.slice(1), ['-p', '--pattern']), '-p', base]
        : flags
      const one = line([...(discovers ? ['discover'] : []), ...narrowed.map(quote), '-v', '-b'])
      const only = (names: readonly string[]): string => {
        return line([...names.map(quote), '-v', '-b']) + filter
      }
      return [{ outcomes: one + filter, details: one, only }]
    },
  }
}

/** Removes these flags and their values. */
function without(words: readonly string[], flags: readonly string[]): string[] {
  return words.filter((word, at) => !flags.includes(word) && !flags.includes(words[at - 1] ?? ''))
}

/** The scripts of a package.json; empty when it is invalid. */
export function scriptsOf(manifest: string): Record<string, string> {
  try {
    const { scripts } = JSON.parse(manifest) as { scripts?: Record<string, unknown> }
    return Object.fromEntries(
      Object.entries(scripts ?? {}).flatMap(([name, script]) =>
        typeof script === 'string' ? [[name, script]] : [],
      ),
    )
  } catch {
    return {}
  }
}
