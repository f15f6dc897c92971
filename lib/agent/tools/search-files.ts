import { showPath } from '../../internal/text.js'
import { throwIfExhausted, unreadable } from '../exhaustion.js'
import { redactor } from '../redaction/redactor.js'
import type { Tool, ToolContext, ToolOutput } from '../tool.js'
import { withOwnThread } from '../workspace/folder-threads.js'
import { decodeText } from '../workspace/text.js'
import type { WorkspaceEntry } from '../workspace/workspace.js'
import { answer, answering, MAX_TOOL_OUTPUT_BYTES, refusal } from './answers.js'
import { defineTool } from './define.js'
import {
  literalMatcher,
  regexMatcher,
  type LineMatcher,
  type LineMatches,
} from './line-matcher.js'
import { PassedOver } from './passed-over.js'

/** Entries listed by one call, folders included. */
const MAX_FILES = 20_000
/** Larger files are skipped, because `workspace.readFile` would refuse them. */
const MAX_FILE_BYTES = 2 * 1024 * 1024
/** Characters of text searched by one call. */
const MAX_TOTAL_CHARACTERS = 256 * 1024 * 1024
const MAX_MATCHES = 200
const READ_AT_ONCE = 16
/** Room for the notes at the end. */
const NOTE_BYTES = 1_024

/** `search_files`: lines that contain a text or match a regular expression. */
export const searchFilesTool: Tool = defineTool({
  name: 'search_files',
  description:
    'Finds lines in the files of a folder and below, shown as path:line:text, at most 200. The ' +
    'pattern is plain text, or a JavaScript regular expression when regex is true. Dependencies ' +
    '(node_modules, .venv) and caches are passed over, as the last line then says; give such a ' +
    'folder as path to search it. .git, links, files over 2 MiB and files that are not text are ' +
    'skipped.',
  parameters: {
    type: 'object',
    properties: {
      pattern: { type: 'string', description: 'What to look for.', minLength: 1, maxLength: 1_000 },
      path: { type: 'string', description: 'File or folder. Default: the working directory.' },
      regex: { type: 'boolean', description: 'Take pattern as an expression. Default: false.' },
      case_sensitive: { type: 'boolean', description: 'Default: true.' },
    },
    required: ['pattern'],
    additionalProperties: false,
  },
  effect: 'read',
  needsFolder: true,
  async execute({ pattern, path = '.', regex = false, case_sensitive: exact = true }, context) {
    return await answering(context, async () => {
      if (!regex && /[\r\n]/.test(pattern)) {
        return refusal('files are searched line by line: use a single line as the pattern')
      }
      const passedOver = new PassedOver()
      const files = await filesAt(path, context, passedOver)
      if (!regex) return await search(literalMatcher(pattern, exact), files, context, passedOver)
      const find = async (): Promise<ToolOutput> => {
        await using matcher = regexMatcher(pattern, exact)
        return await search(matcher, files, context, passedOver)
      }
      return await withOwnThread(context.runId, find, context.signal)
    })
  },
})

async function filesAt(
  path: string,
  { workspace }: ToolContext,
  passedOver: PassedOver,
): Promise<readonly WorkspaceEntry[]> {
  const options = { recursive: true, limit: MAX_FILES, onPassedOver: passedOver.add }
  try {
    const entries = await workspace.list(path, options)
    return entries.filter(({ type, size }) => type === 'file' && size <= MAX_FILE_BYTES)
  } catch (error) {
    throwIfExhausted(error)
    // It may be a file; otherwise the error of the listing is the one to report.
    const content = await workspace.readFile(path).catch(unreadable)
    if (content === null) throw error
    return [{ path, type: 'file', size: content.length }]
  }
}

async function search(
  matcher: LineMatcher,
  files: readonly WorkspaceEntry[],
  context: ToolContext,
  passedOver: PassedOver,
): Promise<ToolOutput> {
  const found: string[] = []
  let [charactersRead, bytesFound, searched] = [0, 0, 0]
  const notes: string[] = []
  for await (const { path, text } of textsOf(files, context)) {
    searched += 1
    charactersRead += text.length
    const { matches, problem } = await matchRedacted(matcher, text, MAX_MATCHES + 1 - found.length)
    if (problem !== undefined) {
      if (searched === 1 || found.length === 0) return refusal(problem)
      notes.push(`[… stopped at ${showPath(path)}: ${problem} …]`)
      break
    }
    for (const { line, text: shown } of matches) {
      const row = `${showPath(path)}:${line}:${shown}`
      bytesFound += Buffer.byteLength(row) + 1
      found.push(row)
    }
    const full = found.length > MAX_MATCHES || bytesFound > MAX_TOOL_OUTPUT_BYTES - NOTE_BYTES
    if (full) notes.push('[… there are more matches; use a narrower pattern or path …]')
    else if (charactersRead > MAX_TOTAL_CHARACTERS) {
      notes.push(`[… stopped after ${searched} files; search a subfolder …]`)
    }
    if (notes.length > 0) break
  }
  const none = `no matches in ${searched} ${searched === 1 ? 'file' : 'files'}`
  if (found.length === 0 && notes.length === 0) notes.push(none)
  return answer([...fitting(found), ...notes, ...passedOver.notes()].join('\n'))
}

/**
 * The matches in the redacted text: an excerpt could cut a secret, and a pattern that finds one
 * would tell what it is. Most files have no match, and are not redacted.
 */
async function matchRedacted(
  matcher: LineMatcher,
  text: string,
  limit: number,
): Promise<LineMatches> {
  const found = await matcher.match(text, limit)
  const shown = found.matches.length === 0 ? text : redactor.lines(text)
  return shown === text ? found : await matcher.match(shown, limit)
}

/** The texts of those files that are text, in order, read in small batches. */
async function* textsOf(
  files: readonly WorkspaceEntry[],
  context: ToolContext,
): AsyncGenerator<{ readonly path: string; readonly text: string }> {
  for (let i = 0; i < files.length; i += READ_AT_ONCE) {
    context.signal.throwIfAborted()
    const some = files.slice(i, i + READ_AT_ONCE)
    // Files that are gone or cannot be read are skipped.
    const contents = await Promise.all(
      some.map(async ({ path }) => await context.workspace.readFile(path).catch(unreadable)),
    )
    for (const [j, { path }] of some.entries()) {
      const content = contents[j] ?? null
      const text = content === null ? null : decodeText(content)
      if (text !== null) yield { path, text }
    }
  }
}

/** The rows that fit the output. */
function fitting(rows: readonly string[]): readonly string[] {
  let bytes = 0
  const shown = rows.slice(0, MAX_MATCHES)
  const end = shown.findIndex((row) => {
    bytes += Buffer.byteLength(row) + 1
    return bytes > MAX_TOOL_OUTPUT_BYTES - NOTE_BYTES
  })
  return end === -1 ? shown : shown.slice(0, end)
}
