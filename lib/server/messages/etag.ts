/**
 * Whether If-None-Match names this entity tag (RFC 9110, section 13.1.2). Compared weakly, as that
 * section requires: compressing proxies prefix the tags of what they changed with `W/`.
 */
export function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag)
}
