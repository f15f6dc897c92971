/** A challenge of WWW-Authenticate or Proxy-Authenticate (RFC 9110, section 11.6.1). */
export interface Challenge {
  /** The authentication scheme, in lower case. */
  readonly scheme: string
  /** Parameters, by name in lower case. */
  readonly params: Readonly<Record<string, string>>
}

/** Parses the challenges of all fields; commas inside quotes do not separate. */
export function parseChallenges(fields: readonly string[]): Challenge[] {
  const challenges: { scheme: string; params: Record<string, string> }[] = []
  for (const field of fields) {
    // A parameter, or a word without "=", which begins a new challenge.
    const token = /([^\s,="]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/g
    for (const [, name, quoted, plain] of field.matchAll(token)) {
      const value = quoted?.replace(/\\(.)/g, '$1') ?? plain
      if (value === undefined) challenges.push({ scheme: name!.toLowerCase(), params: {} })
      else {
        const params = challenges.at(-1)?.params
        if (params !== undefined) params[name!.toLowerCase()] ??= value
      }
    }
  }
  return challenges
}
