/** The lines of a text without their ends, one by one: an array of all would be far larger. */
export function* textLines(text: string): Generator<string> {
  for (let at = 0; ; ) {
    const end = text.indexOf('\n', at)
    yield end === -1 ? text.slice(at) : text.slice(at, end)
    if (end === -1) return
    at = end + 1
  }
}
