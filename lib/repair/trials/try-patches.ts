import { showPath } from '../../internal/text.js'
import { compareLines, linesOf, type LineChange } from '../../internal/line-diff.js'
import { inSlices } from '../../internal/time.js'
import { defineTool, headAndTail, type Tool, type Workspace } from '../../agent/index.js'
import {
  MAX_EDITS, MAX_PATCHES, type LineUse, type TestedLines, type Trial, type TrialReport,
} from './trial.js'
import { Trials } from './trials.js'

/** Milliseconds: that of the longest command, and more to say what came of it. */
const TIMEOUT_MS = 900_000
const MAX_COMMAND_MS = 600_000
/** Bytes of the output of each run, and of all that is shown: first of the patches and lines. */
const MAX_OUTPUT_BYTES = 256 * 1024
const ALL_BYTES = 62_000
const LINES_BYTES = 24_000
const TRIALS_BYTES = 28_000
const LEAST_TRIAL_BYTES = 300

/** `try_patches`: runs a command with each of several patches, in copies of the workspace. */
export const tryPatchesTool: Tool = defineTool({
  name: 'try_patches',
  description:
    'Tells which of several patches would help: runs a command in copies of the working ' +
    'directory, once as it is and once with each patch, some at the same time. Nothing in the ' +
    'working directory changes: make the patch that you choose with edit_file. Of each run you ' +
    'get the exit code and how its output differs from the one without a patch.',
  parameters: {
    type: 'object',
    properties: {
      patches: {
        type: 'array',
        maxItems: MAX_PATCHES,
        description: 'Each is tried alone.',
        items: {
          type: 'object',
          properties: {
            edits: {
              type: 'array',
              minItems: 1,
              maxItems: MAX_EDITS,
              items: {
                type: 'object',
                properties: {
                  path: { type: 'string', minLength: 1 },
                  old_text: { type: 'string', minLength: 1 },
                  new_text: { type: 'string' },
                  occurrence: { type: 'integer', minimum: 0 },
                },
                required: ['path', 'old_text', 'new_text'],
                additionalProperties: false,
              },
            },
            note: { type: 'string', description: 'What it does, for people who watch.' },
          },
          required: ['edits'],
          additionalProperties: false,
        },
      },
      command: { type: 'string', minLength: 1, description: 'Such as one that runs tests.' },
      timeout_ms: {
        type: 'integer',
        minimum: 1,
        maximum: MAX_COMMAND_MS,
        description: 'For each run. Default: three times what it takes without a patch, and 2 s.',
      },
      watch: {
        type: 'boolean',
        description: 'Also tell which lines failing tests run (JavaScript and Python).',
      },
    },
    required: ['patches', 'command'],
    additionalProperties: false,
  },
  // The copies are thrown away, so that a call may run again.
  effect: 'read',
  startsProcess: true,
  explores: true,
  needsFolder: true,
  commands: ({ command }) => [command as string],
  timeoutMs: TIMEOUT_MS,
  async execute({ patches, command, timeout_ms: timeoutMs, watch }, context) {
    const report = await trialsIn(context.workspace).try({
      patches: patches.map(({ edits }) => edits),
      command, timeoutMs, watch, maxOutputBytes: MAX_OUTPUT_BYTES,
    }, context)
    return await describeReport(report)
  },
})

/** Kept as long as their runs work in this process. */
const known = new WeakMap<Workspace, Trials>()

function trialsIn(workspace: Workspace): Trials {
  const trials = known.get(workspace) ?? new Trials()
  known.set(workspace, trials)
  return trials
}

/** What models are told. What a command printed is indented, so that it says nothing else. */
export async function describeReport(report: TrialReport): Promise<string> {
  const { base, timeoutMs, trials, tested } = report
  const each = Math.max(LEAST_TRIAL_BYTES, Math.floor(TRIALS_BYTES / (trials.length || 1)))
  const told: string[] = []
  for (const [at, trial] of trials.entries()) {
    told.push(`Patch ${at + 1}: ${await describeTrial(trial, base.output, timeoutMs, each)}`)
  }
  if (tested !== null) told.push(describeLines(tested))
  const rest = ALL_BYTES - Buffer.byteLength(told.join('\n'))
  const ms = Math.round(base.durationMs)
  const ended = base.timedOut ? `reached the time limit after ${ms} ms` : `${ms} ms`
  const first = `Without a patch: exit code ${base.exitCode} (${ended})`
  // Last, as the middle of a long answer is what language models do not get.
  return [headline(trials), ...told, withOutput(first, shortened(base.output, rest))].join('\n')
}

/** Indented, it has more bytes. */
function shortened(output: string, maxBytes: number): string {
  const lines = output.split('\n').length
  return headAndTail(output, Math.max(LEAST_TRIAL_BYTES, maxBytes - 2 * lines))
}

function withOutput(line: string, output: string): string {
  return output === '' ? line : `${line}\n${indented(output)}`
}

function headline(trials: readonly Trial[]): string {
  if (trials.length === 0) return 'The command ran as it is, as there is no patch.'
  const count = (wanted: (trial: Trial) => boolean): number => trials.filter(wanted).length
  const ran = count(({ state }) => state === 'ran')
  const late = count((trial) => trial.state === 'ran' && trial.result.timedOut)
  const good = count((trial) => trial.state === 'ran' && trial.result.exitCode === 0)
  const impossible = count(({ state }) => state === 'impossible')
  const left = trials.length - ran - impossible
  const patches = ran === 1 ? '1 patch' : `${ran} patches`
  return (
    `${patches} tried, ${good} with exit code 0, ${late} reached the time limit` +
    (impossible > 0 ? `, ${impossible} could not be made` : '') +
    (left > 0 ? `; ${left} not tried, as this took too long: call again with them` : '')
  )
}

async function describeTrial(
  trial: Trial,
  base: string,
  timeoutMs: number,
  bytes: number,
): Promise<string> {
  if (trial.state === 'not tried') return 'not tried'
  if (trial.state === 'impossible') {
    // On one line: a path in it could have others that look like what came of other patches.
    return `could not be made: ${trial.problem.replaceAll('\n', ' ')}`
  }
  const { durationMs, exitCode, output, timedOut } = trial.result
  const ms = Math.round(durationMs)
  const ended = timedOut ? `reached its time limit of ${timeoutMs} ms` : `${ms} ms`
  const [a, b] = [await inSlices(linesOf(base)), await inSlices(linesOf(output))]
  const changes = await inSlices(compareLines(a, b))
  const line = `exit code ${exitCode} (${ended})`
  if (changes.length === 0) return `${line}, same output`
  return withOutput(line, changedLines(a, b, changes, bytes))
}

/**
 * The changed lines after their places, as in a unified diff without context. A last line tells how
 * many lines did not fit.
 */
function changedLines(
  a: readonly string[],
  b: readonly string[],
  changes: readonly LineChange[],
  maxBytes: number,
): string {
  const lines: string[] = []
  for (const { aStart, aEnd, bStart, bEnd } of changes) {
    lines.push(`@@ -${aStart + 1},${aEnd - aStart} +${bStart + 1},${bEnd - bStart} @@`)
    for (const line of a.slice(aStart, aEnd)) lines.push(`-${bare(line)}`)
    for (const line of b.slice(bStart, bEnd)) lines.push(`+${bare(line)}`)
  }
  let bytes = 0
  const end = lines.findIndex((line) => (bytes += Buffer.byteLength(line) + 1) > maxBytes)
  if (end < 0) return lines.join('\n')
  return [...lines.slice(0, end), `… ${lines.length - end} more lines`].join('\n')
}

function bare(line: string): string {
  return line.endsWith('\n') ? line.slice(0, -1) : line
}

function indented(text: string): string {
  return bare(text).split('\n').map((line) => `  ${line}`).join('\n')
}

/** Files and lines, the most telling first; how many failing and other tests ran each. */
function describeLines({ failed, passed, files }: TestedLines): string {
  const head = `Lines run by failing tests, of ${failed} failing and ${passed} other ones:`
  const lines = [head]
  let bytes = 0
  for (const [path, uses] of files) {
    for (const text of [`  ${showPath(path)}`, ...ranges(uses).map((range) => `    ${range}`)]) {
      bytes += Buffer.byteLength(text) + 1
      if (bytes > LINES_BYTES) return [...lines, '  … and more'].join('\n')
      lines.push(text)
    }
  }
  return lines.join('\n')
}

/** `12-15: 3 failing, 40 other` for neighbouring lines that the same number of tests ran. */
function ranges(uses: readonly LineUse[]): string[] {
  const found: string[] = []
  for (let at = 0; at < uses.length; ) {
    const { line, failed, passed } = uses[at]!
    let end = at + 1
    const isNext = ({ line: other, failed: f, passed: p }: LineUse): boolean =>
      other === line + end - at && f === failed && p === passed
    while (end < uses.length && isNext(uses[end]!)) end += 1
    const last = uses[end - 1]!.line
    found.push(`${last === line ? line : `${line}-${last}`}: ${failed} failing, ${passed} other`)
    at = end
  }
  return found
}
