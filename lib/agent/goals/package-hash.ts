/**
 * What is remembered of a package.json: enough to tell a script that was changed from one that was
 * added. Work on a package adds scripts, and none of the check's own runs them.
 *
 * @module
 */
import { hash } from 'node:crypto'

const PREFIX = 'package:'
/** Packages with more scripts than these are compared as a whole. */
const MAX_SCRIPTS = 200
/** Characters kept of the SHA-256 of a script. */
const LENGTH = 16

/** Keys besides scripts that decide what a test command does. */
const KEYS: ReadonlySet<string> = new Set([
  'config', 'jest', 'mocha', 'ava', 'tap', 'c8', 'nyc', 'vitest', 'eslintConfig', 'bun', 'babel',
  'imports',
])
/** Keys that format 2 of stored runs did not know. */
const LATER: ReadonlySet<string> = new Set(['babel', 'imports'])

/**
 * The hash of what in a package.json decides what a test command does; null when nothing does. What
 * cannot be parsed counts as a whole.
 */
export function hashPackage(content: string): string | null {
  let parsed: object
  try {
    const value: unknown = JSON.parse(content.replace(/^\uFEFF/, ''))
    if (typeof value !== 'object' || value === null) return hash('sha256', content)
    parsed = value
    const all = Object.entries(parsed).filter(([key]) => KEYS.has(key) || key === 'scripts')
    return all.length === 0 ? null : ofParts(all)
  } catch {
    // Not JSON, or nested more deeply than the stack allows.
    return hash('sha256', content)
  }
}

function ofParts(entries: readonly (readonly [string, unknown])[]): string {
  const settings = entries.filter(([key]) => key !== 'scripts')
  const scripts = entries.find(([key]) => key === 'scripts')?.[1]
  const named = typeof scripts === 'object' && scripts !== null ? Object.entries(scripts) : []
  const isWhole = named.length > MAX_SCRIPTS
  const own = named.filter(([name]) => isWhole || runsBesideOthers(name, named))
  const others = isWhole ? [] : named.filter(([name]) => !runsBesideOthers(name, named))
  const before = entries.filter(([key]) => !LATER.has(key))
  return [
    PREFIX.slice(0, -1),
    before.length === 0 ? '-' : hash('sha256', stable(Object.fromEntries(before))),
    hash('sha256', stable([Object.fromEntries(settings), Object.fromEntries(own)])),
    ...others.map((script) => hash('sha256', stable(script)).slice(0, LENGTH)).sort(),
  ].join(':')
}

/** `pretest` runs whenever `test` does. */
function runsBesideOthers(name: string, all: readonly (readonly [string, unknown])[]): boolean {
  const other = /^(?:pre|post)(.+)$/.exec(name)?.[1]
  return other !== undefined && (other === 'test' || all.some(([one]) => one === other))
}

/**
 * Is a file what it was, by the hashes of then and now? Scripts may have come to a package.json.
 * Hashes of format 2 count all scripts.
 */
export function isSameContent(then: string, now: string): boolean {
  if (then === now) return true
  if (!now.startsWith(PREFIX)) return false
  const [, before, settings, ...scripts] = now.split(':')
  if (!then.startsWith(PREFIX)) return then === before
  const [, , settingsThen, ...scriptsThen] = then.split(':')
  const found = new Set(scripts)
  return settings === settingsThen && scriptsThen.every((one) => found.has(one))
}

/** JSON with sorted keys, so that their order in package.json does not matter. */
function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${stable(item)}`).join(',')}}`
}
