/** `line` from `start` without blanks around it (spaces and tabs only, RFC 9112, section 5). */
export function withoutBlanks(line: string, start = 0): string {
  let from = start
  let to = line.length
  while (from < to && (line[from] === ' ' || line[from] === '\t')) from++
  while (to > from && (line[to - 1] === ' ' || line[to - 1] === '\t')) to--
  return line.slice(from, to)
}

/** A field value of octets, one character each: as UTF-8 where it can be read so, else as latin1. */
export function readable(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}
