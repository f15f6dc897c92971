/** The text before and after a change; each occurs exactly once in its version of the file. */
export interface Edit {
  readonly oldText: string
  readonly newText: string
}

/** Replaces the text from `start` to `end`. */
export function applyPatch(
  text: string,
  patch: { readonly start: number; readonly end: number; readonly text: string },
): string {
  return text.slice(0, patch.start) + patch.text + text.slice(patch.end)
}

function occursOnce(text: string, part: string): boolean {
  if (part === '') return false
  const first = text.indexOf(part)
  return first >= 0 && text.indexOf(part, first + 1) < 0
}

/**
 * Expands a patch to whole lines, with enough context to be unique both before and after the
 * change, so that it can be applied and reverted by text replacement.
 */
export function editOf(
  text: string,
  patch: { readonly start: number; readonly end: number; readonly text: string },
): Edit {
  const patched = applyPatch(text, patch)
  let from = lineStart(text, patch.start)
  let to = lineEnd(text, patch.end)
  const shift = patched.length - text.length
  for (;;) {
    const edit = { oldText: text.slice(from, to), newText: patched.slice(from, to + shift) }
    if (occursOnce(text, edit.oldText) && occursOnce(patched, edit.newText)) return edit
    if (from === 0 && to === text.length) return edit
    if (from > 0) from = lineStart(text, from - 1)
    else to = lineEnd(text, to + 1)
  }
}

function lineEnd(text: string, from: number): number {
  const newline = text.indexOf('\n', Math.min(from, text.length))
  return newline < 0 ? text.length : newline
}

function lineStart(text: string, from: number): number {
  return from === 0 ? 0 : text.lastIndexOf('\n', from - 1) + 1
}
