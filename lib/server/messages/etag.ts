/**
 * Does If-None-Match name this entity tag (RFC 9110, section 13.1.2)? Compared weakly, as the
 * section asks: proxies that compress mark the tags of what they changed with `W/`.
 */
export function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag)
}
