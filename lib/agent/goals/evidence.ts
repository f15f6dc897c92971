/**
 * The evidence for a judge: one JSON object for each change of a file and each call of a tool, each
 * in one line, so that nothing in a diff or an output can be taken for an entry of its own. Long
 * texts are cut by whole lines, and the entry says how many were left out.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import type { RunRecord } from '../events.js'
import { clip, headAndTail } from '../output.js'

/** Characters of all diffs, and of one. */
const MAX_DIFFS = 48_000
const MAX_DIFF = 12_000
/** Characters of all calls with their output, and of the arguments or the output of one. */
const MAX_CALLS = 24_000
const MAX_TEXT = 4_000
/** Characters of a fork's evidence, with that of its source. */
const MAX_ALL = 150_000

/** The same for a run that may be a fork, with what its source had shown. */
export function evidenceOf(
  fork: { readonly evidence?: string } | undefined,
  records: Iterable<RunRecord>,
): string {
  const own = collectEvidence(records)
  if (fork?.evidence === undefined) return own
  const { evidence } = fork
  // Runs of earlier versions have stored plain text.
  const isPlain = !evidence.startsWith('{')
  const before = isPlain
    ? [line({ earlier: headAndTail(evidence, MAX_ALL) })]
    : evidence.split('\n')
  const forked = line({ note: 'the run was forked here' })
  return newest([...before, forked, ...own.split('\n')], MAX_ALL).join('\n')
}

/**
 * Collects the evidence from a log: changes of files, then calls of tools, each oldest first. Files
 * that are back to their first content are left out, and so are calls that only read.
 */
export function collectEvidence(records: Iterable<RunRecord>): string {
  const files = new Map<
    string,
    { first: string | null; now: string | null; readonly diffs: string[] }
  >()
  const calls: string[] = []
  const argsOf = new Map<string, JsonValue>()
  const reads = new Set<string>()
  for (const { kind, payload } of records) {
    if (kind === 'tool_call') argsOf.set(payload.call_id, payload.args)
    if (kind === 'tool_started' && payload.effect === 'read') reads.add(payload.call_id)
    if (kind !== 'tool_result') continue
    const { call_id, tool, output, exit_code, changes = [] } = payload
    for (const { path, change, diff, before_sha256 = null, after_sha256 = null } of changes) {
      const file = files.get(path) ?? { first: before_sha256, now: null, diffs: [] }
      file.now = after_sha256
      file.diffs.push(line({ path, change, ...cut('diff', diff, MAX_DIFF) }))
      files.set(path, file)
    }
    if (reads.has(call_id) || (changes.length > 0 && tool !== 'bash')) continue
    const args = cutArguments(argsOf.get(call_id) ?? {})
    calls.push(line({ tool, ...args, exit_code, ...cut('output', output, MAX_TEXT) }))
  }
  const changed = [...files.values()].filter(({ first, now }) => first === null || first !== now)
  const diffs = newest(changed.flatMap((file) => file.diffs), MAX_DIFFS)
  return [
    ...(diffs.length === 0 ? [line({ note: 'no file was changed' })] : diffs),
    ...(calls.length === 0 ? [line({ note: 'no command was run' })] : newest(calls, MAX_CALLS)),
  ].join('\n')
}

function line(entry: JsonObject): string {
  return JSON.stringify(entry)
}

/** The last lines that stay within `limit` characters together, after a note on the others. */
function newest(lines: readonly string[], limit: number): readonly string[] {
  let characters = 0
  const left = lines.findLastIndex((text) => (characters += text.length) > limit) + 1
  return left === 0 ? lines : [line({ entries_left_out: left }), ...lines.slice(left)]
}

/** Arguments as they are, or the longest texts among them cut. */
function cutArguments(args: JsonValue): JsonObject {
  if (JSON.stringify(args).length <= MAX_TEXT) return { args }
  if (!isJsonObject(args)) return cut('args', JSON.stringify(args), MAX_TEXT)
  const all = Object.entries(args)
  const most = Math.floor(MAX_TEXT / all.length)
  const each = all.flatMap(([name, value]) =>
    Object.entries(cut(name, typeof value === 'string' ? value : JSON.stringify(value), most)),
  )
  return { args: Object.fromEntries(each) }
}

/** A text by its name; of one that is too long, lines in its middle are left out and counted. */
function cut(name: string, text: string, most: number): JsonObject {
  if (text.length <= most) return { [name]: text }
  const lines = text.split('\n')
  const [head, tail]: [string[], string[]] = [[], []]
  let room = most
  // From both ends in turn, so that neither uses up the room of the other.
  while (head.length + tail.length < lines.length) {
    const isHead = head.length <= tail.length
    const next = lines[isHead ? head.length : lines.length - 1 - tail.length]!
    if (next.length >= room) break
    room -= next.length + 1
    if (isHead) head.push(next)
    else tail.unshift(next)
  }
  const left = lines.length - head.length - tail.length
  // One line may be longer than all that there is room for.
  if (head.length === 0) head.push(clip(lines[0]!, room))
  return {
    [name]: head.join('\n'),
    [`${name}_lines_left_out`]: left,
    [`${name}_end`]: tail.join('\n'),
  }
}
