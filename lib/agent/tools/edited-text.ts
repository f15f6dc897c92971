import { showPath } from '../../internal/text.js'
import { TextFinder } from './text-finder.js'
import type { TextEdit } from '../workspace-copy.js'

/** The file's text before and after an edit; `after` is null when the edit is impossible. */
export interface EditedText {
  readonly before: string | null
  readonly after: string | null
  readonly problem: string
  readonly count: number
}

/** Makes an edit in the text of its file; null is a file that is not text. */
export function editedText(before: string | null, edit: TextEdit): EditedText {
  const path = showPath(edit.path)
  const fail = (problem: string): EditedText => ({ before, after: null, problem, count: 0 })
  if (before === null) return fail(`${path} is not UTF-8 text and cannot be edited`)
  if (edit.old_text === edit.new_text) {
    return fail('old_text and new_text are the same: nothing to change')
  }
  const { old, now } = withLineEndsOf(before, edit)
  const offsets = offsetsOf(before, old)
  if (offsets.length === 0) return fail(notFound(before, path, edit.old_text))
  const { occurrence } = edit
  if (occurrence === undefined && offsets.length > 1) {
    return fail(
      `old_text occurs ${offsets.length} times in ${path} (${linesOf(before, offsets)}); ` +
        'include more of the surrounding text, or select one with occurrence (0 for all)',
    )
  }
  if (occurrence !== undefined && occurrence > offsets.length) {
    return fail(
      `occurrence is ${occurrence}, but old_text occurs ` +
        `${offsets.length === 1 ? 'once' : `${offsets.length} times`} in ${path}`,
    )
  }
  const chosen = occurrence === 0 ? offsets : [offsets[(occurrence ?? 1) - 1] ?? 0]
  let [after, at] = ['', 0]
  for (const offset of chosen) {
    after += before.slice(at, offset) + now
    at = offset + old.length
  }
  return { before, after: after + before.slice(at), problem: '', count: chosen.length }
}

/** Models write `\n`, which in a file whose lines all end in CRLF stands for CRLF. */
function withLineEndsOf(
  text: string,
  edit: TextEdit,
): { readonly old: string; readonly now: string } {
  const { old_text: old, new_text: now } = edit
  const onlyCrLf = text.includes('\r\n') && !/(^|[^\r])\n/.test(text)
  if (!onlyCrLf || old.includes('\r')) return { old, now }
  const convert = (part: string): string => part.replaceAll(/\r?\n/g, '\r\n')
  return { old: convert(old), now: convert(now) }
}

function offsetsOf(text: string, part: string): readonly number[] {
  const offsets: number[] = []
  const finder = new TextFinder(part)
  for (let at = finder.indexIn(text); at !== -1; at = finder.indexIn(text, at + part.length)) {
    offsets.push(at)
  }
  return offsets
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

function linesOf(text: string, offsets: readonly number[]): string {
  const shown = offsets.slice(0, 8).map((offset) => lineOf(text, offset))
  return `lines ${shown.join(', ')}${offsets.length > shown.length ? ', …' : ''}`
}

/** Names a line that differs only in white space, the usual mistake. */
function notFound(text: string, path: string, old: string): string {
  const plain = (part: string): string => part.replaceAll(/\s+/g, ' ').trim()
  const wanted = old.split('\n').map(plain).filter((line) => line !== '')
  const lines = text.split('\n').map(plain)
  const at = wanted.length === 0 ? -1 : lines.findIndex((line) => line === wanted[0])
  const near =
    at === -1 ? '' : ` Line ${at + 1} differs from its first line only in white space.`
  return `old_text was not found in ${path}.${near} Read the file again and copy the text exactly.`
}
