/**
 * Globs over relative paths with forward slashes: `*` and `?` match within one segment, `**` any
 * number of segments, `{a,b}` either alternative; a leading `!` excludes paths.
 *
 * @module
 */

/** True for a relative path that a list of globs matches. */
export type PathMatcher = (path: string) => boolean

/** Compiles a list of globs: a path matches when a plain glob matches it and no `!` glob does. */
export function compileGlobs(globs: readonly string[]): PathMatcher {
  const included: RegExp[] = []
  const excluded: RegExp[] = []
  for (const glob of globs) {
    if (glob.startsWith('!')) excluded.push(compileGlob(glob.slice(1)))
    else included.push(compileGlob(glob))
  }
  return (path) =>
    included.some((glob) => glob.test(path)) && !excluded.some((glob) => glob.test(path))
}

/** True when a glob names one path only. */
export function isLiteral(glob: string): boolean {
  return !/[*?{}]/.test(glob) && !glob.startsWith('!')
}

/** All runs use the same few globs, so they stay compiled, up to this number. */
const MAX_COMPILED = 1_000
const compiled = new Map<string, RegExp>()

function compileGlob(glob: string): RegExp {
  let pattern = compiled.get(glob)
  if (pattern === undefined) {
    pattern = new RegExp(`^${sourceOf(glob)}$`, 's')
    if (compiled.size >= MAX_COMPILED) compiled.clear()
    compiled.set(glob, pattern)
  }
  return pattern
}

function sourceOf(glob: string): string {
  let source = ''
  let depth = 0
  for (let i = 0; i < glob.length; i++) {
    const char = glob[i]!
    if (char === '*') {
      if (glob[i + 1] !== '*') source += '[^/]*'
      else if (glob[i + 2] === '/') ((source += '(?:[^/]+/)*'), (i += 2))
      else ((source += '.*'), i++)
    } else if (char === '?') source += '[^/]'
    else if (char === '{') ((source += '(?:'), depth++)
    else if (char === '}' && depth > 0) ((source += ')'), depth--)
    else if (char === ',' && depth > 0) source += '|'
    else source += char.replace(/[\\^$.*+?()[\]{}|]/, '\\$&')
  }
  return source + ')'.repeat(depth)
}
