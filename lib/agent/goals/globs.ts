/**
 * Globs over relative paths with forward slashes: `*` and `?` stay within one segment, `**` spans
 * any number of them, `{a,b}` gives alternatives, and a leading `!` takes paths out again.
 *
 * @module
 */

/** Tells for a relative path whether a list of globs holds it. */
export type PathMatcher = (path: string) => boolean

/** Compiles a list of globs. A path is held when a plain glob matches it and no `!` glob does. */
export function compileGlobs(globs: readonly string[]): PathMatcher {
  const taken: RegExp[] = []
  const left: RegExp[] = []
  for (const glob of globs) {
    if (glob.startsWith('!')) left.push(compileGlob(glob.slice(1)))
    else taken.push(compileGlob(glob))
  }
  return (path) => taken.some((held) => held.test(path)) && !left.some((out) => out.test(path))
}

/** True when a glob names one path only. */
export function isLiteral(glob: string): boolean {
  return !/[*?{}]/.test(glob) && !glob.startsWith('!')
}

/** Globs that are kept compiled: a host's goals use the same few for every run. */
const KEPT_GLOBS = 1_000
const compiled = new Map<string, RegExp>()

function compileGlob(glob: string): RegExp {
  let pattern = compiled.get(glob)
  if (pattern === undefined) {
    pattern = new RegExp(`^${sourceOf(glob)}$`, 's')
    if (compiled.size >= KEPT_GLOBS) compiled.clear()
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
