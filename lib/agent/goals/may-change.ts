/**
 * Files of a check that a run may change because its request says so: globs of paths, and keys of a
 * package.json by `package.json#exports`.
 *
 * @module
 */
import { posix } from 'node:path'
import type { SchemaViolation } from '../schema.js'
import { compileGlobs } from '../workspace/globs.js'
import { hashPackage, stable } from './package-hash.js'
import { SEALED } from './test-files.js'

const MANIFEST = 'package.json'
/** Keys of a package.json by which a runner decides what it runs. */
const OF_RUNNERS = new Set(
  'scripts config jest mocha ava tap c8 nyc vitest bun babel'.split(' '),
)
/** Python and runners load these by themselves, and make runs what the last ones say. */
const HOOKS = [
  '**/{*.pth,*.egg-link,*.py[co],entry_points.txt,__mocks__/**}', '**/{GNUm,m,M}akefile',
]

/** Does a runner load this file by itself, or read in it what to run? */
export const isOfRunners: (path: string) => boolean = compileGlobs([...SEALED, ...HOOKS])

/** What is wrong with a glob of a request; null for nothing. */
export function globProblem(glob: string): string | null {
  const [path = '', key, ...more] = glob.split('#')
  const isRelative = path !== '' && !path.startsWith('/') && !path.split('/').includes('..')
  if (!isRelative || path.startsWith('!')) return 'must be a glob of paths in the working directory'
  if (key === undefined) return null
  if (more.length > 0 || key === '' || posix.basename(path) !== MANIFEST)
    return 'may have one # only, between a package.json and the name of a key'
  return OF_RUNNERS.has(key) ? `never covers ${key}, by which runners decide what they run` : null
}

/** What is wrong with the globs of a request; empty for nothing. */
export function globViolations(globs: readonly string[]): readonly SchemaViolation[] {
  return globs.flatMap((glob, i) => {
    const detail = globProblem(glob)
    return detail === null ? [] : [{ pointer: `/may_change/${i}`, detail }]
  })
}

/** Is this a key of a package.json that no runner reads as its settings? */
export function isKeyOfWork(key: string): boolean {
  return !OF_RUNNERS.has(key.split('.')[0]!)
}

/** Do globs name this file, or of a package.json all of these keys? */
export function isNamed(
  globs: readonly string[],
  path: string,
  keys: readonly string[] = [],
): boolean {
  const names = keys.length === 0 ? [''] : keys
  return names.every((key) => {
    const paths = globs.flatMap((one) => {
      const [glob = '', of = ''] = one.split('#')
      return of === key ? [glob] : []
    })
    return compileGlobs(paths)(path)
  })
}

/** The keys of a package.json that decide a check and have changed: `scripts.test`, `imports`. */
export function changedKeys(before: string | null, after: string | null): readonly string[] {
  const [then, now] = [parsed(before), parsed(after)]
  const keys = [...new Set([...Object.keys(then), ...Object.keys(now)])].sort()
  return keys.flatMap((key) => {
    const decides = [then, now].some((one) => hashPackage(JSON.stringify({ [key]: one[key] })))
    if (!decides || stable(then[key] ?? null) === stable(now[key] ?? null)) return []
    if (key !== 'scripts') return [key]
    const [old, current] = [objectOf(then[key]), objectOf(now[key])]
    const isSame = (name: string): boolean => stable(old[name]) === stable(current[name] ?? null)
    return Object.keys(old).flatMap((name) => (isSame(name) ? [] : [`scripts.${name}`]))
  })
}

function parsed(text: string | null): Readonly<Record<string, unknown>> {
  try {
    return objectOf(JSON.parse(text ?? '{}'))
  } catch {
    return {}
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
