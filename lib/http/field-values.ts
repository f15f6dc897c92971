/** `line` from `start`, without the spaces and tabs around it (RFC 9112, section 5). */
export function trimBlanks(line: string, start = 0): string {
  let from = start
  let to = line.length
  while (from < to && (line[from] === ' ' || line[from] === '\t')) from++
  while (to > from && (line[to - 1] === ' ' || line[to - 1] === '\t')) to--
  return line.slice(from, to)
}

/** The members of a comma-separated list, in lower case; none for a missing field. */
export function listMembers(value: string | null): string[] {
  return value === null ? [] : value.toLowerCase().split(',').map((member) => member.trim())
}

/** Whether a comma-separated list has `member`, which is in lower case. */
export function hasMember(value: string | null, member: string): boolean {
  // Most values do not contain the word at all.
  if (value === null || !value.toLowerCase().includes(member)) return false
  return listMembers(value).includes(member)
}

/** Decodes a value of one byte per character: as UTF-8 where that is valid, else as latin1. */
export function decodeValue(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}
