/** Lines of one block that are read. */
const MAX_LINES = 2_000

/** The keys of a block of diagnostics, with nested values as text, and where it ends. */
export interface YamlBlock {
  readonly values: ReadonlyMap<string, string>
  /** Index of the line after the block. */
  readonly next: number
}

const KEY = /^([\w-]+|'[^']*'|"[^"]*"):(?: (.*))?$/
const NONE: ReadonlyMap<string, string> = new Map()

/**
 * Reads the block of diagnostics that starts at line `from` of a report in the Test Anything
 * Protocol. It understands what test runners write, which is not all of YAML: keys of one level,
 * texts over several lines in each style, and quoted texts that go on unindented.
 */
export function readYamlBlock(lines: readonly string[], from: number): YamlBlock {
  const margin = /^( *)---$/.exec(lines[from] ?? '')?.[1]
  if (margin === undefined) return { values: NONE, next: from }
  const values = new Map<string, string>()
  let indent = -1
  let key = ''
  /** What closes a quoted text that goes on over several lines. */
  let quote = ''
  let at = from + 1
  for (; at < lines.length && at - from < MAX_LINES; at++) {
    const line = lines[at]!
    if (quote !== '') {
      append(values, key, line)
      if (!closes(line, quote)) continue
      values.set(key, unquote(values.get(key)!))
      quote = ''
      continue
    }
    if (line === `${margin}...` || line === `${margin}---`) return { values, next: at + 1 }
    const space = line.search(/\S/)
    if (indent < 0 && space >= 0) indent = space
    const entry = space === indent ? KEY.exec(line.slice(space)) : null
    if (entry === null) {
      if (key !== '') append(values, key, line.slice(Math.min(indent + 2, Math.max(space, 0))))
      continue
    }
    key = entry[1]!.replace(/^['"]|['"]$/g, '')
    const value = (entry[2] ?? '').trimStart()
    const opening = /^["']/.exec(value)?.[0] ?? ''
    if (opening !== '' && !closes(value.slice(1), opening)) quote = opening
    values.set(key, quote !== '' ? value : /^[|>]\d?[-+]?$/.test(value) ? '' : unquote(value))
  }
  return { values, next: at }
}

function append(values: Map<string, string>, key: string, line: string): void {
  const before = values.get(key)!
  values.set(key, before === '' ? line : `${before}\n${line}`)
}

/** Whether a quoted text ends at the end of this line. */
function closes(line: string, quote: string): boolean {
  if (!line.endsWith(quote)) return false
  let escapes = 0
  const mark = quote === '"' ? '\\' : "'"
  for (let at = line.length - 2; at >= 0 && line[at] === mark; at--) escapes++
  return escapes % 2 === 0
}

function unquote(value: string): string {
  const inner = value.slice(1, -1)
  if (value.length > 1 && value.startsWith("'") && value.endsWith("'"))
    return inner.replace(/''/g, "'").replace(/\\(['\\])/g, '$1')
  if (value.length > 1 && value.startsWith('"') && value.endsWith('"'))
    return inner.replace(/\\(["\\n])/g, (_, char: string) => (char === 'n' ? '\n' : char))
  return value
}
