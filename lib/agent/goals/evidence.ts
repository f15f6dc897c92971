import type { RunRecord } from '../events.js'
import { headAndTail } from '../output.js'

/** Characters of all diffs, and of one. */
const MAX_DIFFS = 48_000
const MAX_DIFF = 12_000
/** Characters of all commands with their output, and of one command or output. */
const MAX_COMMANDS = 24_000
const MAX_COMMAND = 4_000
/** Bytes of a fork's evidence, with that of its source. */
const MAX_ALL = 150_000

/** The same for a run that may be a fork, with what its source had shown. */
export function evidenceOf(
  fork: { readonly evidence?: string } | undefined,
  records: Iterable<RunRecord>,
): string {
  const own = collectEvidence(records)
  if (fork?.evidence === undefined) return own
  return headAndTail(`Before this run:\n\n${fork.evidence}\n\nSince then:\n\n${own}`, MAX_ALL)
}

/**
 * What the log shows of the work, as text for a judge: the changes of each file and the commands,
 * each oldest first. A file that is back to its first content is left out.
 */
export function collectEvidence(records: Iterable<RunRecord>): string {
  const files = new Map<
    string,
    { first: string | null; now: string | null; readonly diffs: string[] }
  >()
  const commands: string[] = []
  const argsOf = new Map<string, string>()
  const reads = new Set<string>()
  for (const { kind, payload } of records) {
    if (kind === 'tool_call') argsOf.set(payload.call_id, JSON.stringify(payload.args))
    if (kind === 'tool_started' && payload.effect === 'read') reads.add(payload.call_id)
    if (kind !== 'tool_result') continue
    const { call_id, tool, output, exit_code, changes = [] } = payload
    for (const { path, change, diff, before_sha256 = null, after_sha256 = null } of changes) {
      const file = files.get(path) ?? { first: before_sha256, now: null, diffs: [] }
      file.now = after_sha256
      file.diffs.push(
        `${path} was ${change}:\n${headAndTail(diff === '' ? '(no text)' : diff, MAX_DIFF)}`,
      )
      files.set(path, file)
    }
    if (reads.has(call_id) || (changes.length > 0 && tool !== 'bash')) continue
    const args = headAndTail(argsOf.get(call_id) ?? '', MAX_COMMAND)
    commands.push(`${tool} ${args}\nexit code ${exit_code}\n${headAndTail(output, MAX_COMMAND)}`)
  }
  const changed = [...files.values()].filter(({ first, now }) => first === null || first !== now)
  const diffs = newest(changed.flatMap((file) => file.diffs), MAX_DIFFS)
  const ran = newest(commands, MAX_COMMANDS)
  return [
    diffs.length === 0
      ? 'No file was changed.'
      : `Changes of files, oldest first:\n\n${diffs.join('\n\n')}`,
    ran.length === 0
      ? 'No command was run.'
      : `Commands and other tool calls, oldest first:\n\n${ran.join('\n\n')}`,
  ].join('\n\n')
}

/** The last texts that stay within `limit` characters together, after a note on the others. */
function newest(texts: readonly string[], limit: number): string[] {
  let characters = 0
  const cut = texts.findLastIndex((text) => (characters += text.length) > limit) + 1
  return cut === 0 ? [...texts] : [`(${cut} earlier ones are left out)`, ...texts.slice(cut)]
}
