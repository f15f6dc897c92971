import { join } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import type { TestOutcome } from '../../test-outcomes.js'
import { readFolder } from '../../workspace/read-folder.js'
import { nodePackages } from '../runner-files.js'
import { readRegularFile } from '../small-file.js'
import { MAX_LISTED, TestCollector } from './outcomes.js'
import { program } from './recognise.js'
import { textLines } from './text-lines.js'
import type { ReportedTest, ReportInjection, ReportPlace, ReportProblem } from './types.js'
import type { TestReport, TestRunner } from './types.js'

const MAX_FILE_BYTES = 16 * 1024 * 1024
const MAX_ENTRIES = 10_000
/** Characters of a program's name, with which the names of all its tests begin. */
const MAX_PROGRAM = 400

export const cargo: TestRunner = {
  command: {
    starts: program((name, [first = '', second]) => {
      const verb = first.startsWith('+') ? second : first
      return name === 'cargo' && (verb === 'test' || verb === 't')
    }),
  },
  inject: injectCargo,
  read: ({ folder, nonce }) => readCargo(folder, nonce),
  packages: (cwd) => nodePackages(cwd),
}

/** Targets that get our runner, which Cargo reads from a variable named after the target. */
const TARGETS = ['x86_64', 'aarch64'].flatMap((cpu) =>
  ['unknown-linux-gnu', 'unknown-linux-musl', 'apple-darwin'].map((system) =>
    `CARGO_TARGET_${cpu}_${system}_RUNNER`.replaceAll('-', '_').toUpperCase(),
  ),
)

/**
 * Our runner for the test programs that Cargo builds. Cargo starts each program through it, and the
 * test harness writes the outcome of every test to a log file. The runner lists all tests first, so
 * that a test which never ended is known. Documentation tests, and programs with a harness of their
 * own, count by their exit code alone.
 */
const RUNNER = String.raw`#!/bin/sh
unset @TARGETS@
if ! grep -aqF 'Write logs to the specified file' "$1"; then exec "$@"; fi
n=0
while ! mkdir '@HERE@/cargo-'$n 2> /dev/null; do n=$((n + 1)); done
out='@HERE@/cargo-'$n
name=$(basename "$1")
printf '%s %s\n' "$CARGO_PKG_NAME" "$(printf '%s' "$name" | sed 's/-[0-9a-f]*$//')" > "$out/name"
"$@" --list --format terse > "$out/list" 2> /dev/null
"$@" --logfile "$out/log"
code=$?
printf '@NONCE@\n' > "$out/end"
exit $code
`

function injectCargo({ folder, nonce }: ReportPlace): ReportInjection {
  const runner = RUNNER.replace('@TARGETS@', TARGETS.join(' '))
    .replaceAll('@HERE@', folder)
    .replace('@NONCE@', nonce)
  const path = join(folder, 'cargo-runner')
  return {
    files: {},
    programs: { 'cargo-runner': runner },
    env: Object.fromEntries(TARGETS.map((name) => [name, path])),
  }
}

/** Reads what the runner wrote, in the order in which the programs ran. */
async function readCargo(folder: string, nonce: string): Promise<TestReport | ReportProblem> {
  const entries = await readFolder(folder, MAX_ENTRIES)
  const names = entries.map(({ name }) => name).filter((name) => /^cargo-\d+$/.test(name))
  if (names.length === 0) return 'absent'
  names.sort((a, b) => Number(a.slice(6)) - Number(b.slice(6)))
  const collector = new TestCollector()
  for (const name of names) {
    const read = async (file: string): Promise<string | null> => {
      const content = await readRegularFile(join(folder, name, file), MAX_FILE_BYTES)
      if (content === 'too_large') return null
      return typeof content === 'string' ? '' : content.toString('utf8')
    }
    const [program, list, log, end] = await Promise.all(['name', 'list', 'log', 'end'].map(read))
    if (program === null || list === null || log === null || end === null) return 'too_large'
    if (end === '') return 'incomplete'
    if (end !== `${nonce}\n`) return 'invalid'
    if (program!.length > MAX_PROGRAM) return 'too_large'
    const found = await cargoTests(program!.trim(), list!, log!)
    if (typeof found === 'string') return found
    if (!(await collector.addAll(found))) return 'too_large'
  }
  return collector.report(false)
}

const OUTCOMES: Readonly<Record<string, TestOutcome>> = {
  ok: 'pass',
  failed: 'fail',
  ignored: 'skip',
}

/**
 * The tests of one program, from its list (`tests::adds: test`) and its log (`ok tests::adds`,
 * `ignored: slow tests::later`). A listed test without an outcome never ended, and has failed.
 */
export async function cargoTests(
  program: string,
  list: string,
  log: string,
): Promise<readonly ReportedTest[] | 'too_large'> {
  const outcomes = new Map<string, TestOutcome>()
  const work = new LongWork()
  for (const line of textLines(list)) {
    if (work.isDue) await work.next()
    const name = /^(.+): (?:test|benchmark)$/.exec(line)?.[1]
    if (name !== undefined) outcomes.set(name, 'fail')
    if (outcomes.size > MAX_LISTED) return 'too_large'
  }
  const reported = new Set<string>()
  for (const line of textLines(log)) {
    if (work.isDue) await work.next()
    const match = /^(ok|failed|ignored)(?::.*)? (\S+)$/.exec(line)
    const name = match?.[2]
    if (name === undefined) continue
    const outcome = OUTCOMES[match![1]!]!
    // A second result for the same test may be forged, so only its failures count.
    outcomes.set(name, reported.has(name) && outcome !== outcomes.get(name) ? 'fail' : outcome)
    reported.add(name)
    if (outcomes.size > MAX_LISTED) return 'too_large'
  }
  return [...outcomes].map(([name, outcome]) => ({
    names: [program, ...name.split('::')],
    outcome,
  }))
}
