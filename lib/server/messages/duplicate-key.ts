/** Strings and keys of a JSON text, and the braces of its objects. */
const TOKEN = /"((?:[^"\\]|\\.)*)"(\s*:)?|[{}]/g

/**
 * The first key that an object of a JSON text has twice, or null. Parsers disagree on which of the
 * two counts (RFC 8259, section 4), so a proxy that checked `"hitl_enabled": true` may have seen
 * another request than the one that runs.
 *
 * @param text - valid JSON.
 */
export function duplicateKey(text: string): string | null {
  const open: Set<string>[] = []
  for (const [token, raw, colon] of text.matchAll(TOKEN)) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (colon !== undefined) {
      const name = raw!.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw!
      const names = open.at(-1)!
      if (names.has(name)) return name
      names.add(name)
    }
  }
  return null
}
