/** Strings of a JSON text, the colons after keys, and the braces of objects. */
const TOKEN = /"((?:[^"\\]|\\.)*)"?|[:{}]/g

/**
 * The first key that an object of a JSON text has twice, or null. Parsers disagree on which of the
 * two counts (RFC 8259, section 4), so a proxy that checked `"hitl_enabled": true` may have seen
 * another request than the one that runs.
 *
 * @param text - valid JSON.
 */
export function duplicateKey(text: string): string | null {
  // Most objects of a hostile body are empty, and a set for each costs more than the rest.
  const open: (Set<string> | null)[] = []
  let raw = ''
  for (const [token, string] of text.matchAll(TOKEN)) {
    if (token === '{') open.push(null)
    else if (token === '}') open.pop()
    else if (string !== undefined) raw = string
    else {
      const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
      const names = (open[open.length - 1] ??= new Set())
      if (names.has(name)) return name
      names.add(name)
    }
  }
  return null
}
