/**
 * What is remembered of a package.json: enough to tell a script that was changed from one that was
 * added. Work on a package adds scripts, and none of the check's own runs them.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'

const PREFIX = 'package:'
/** Packages with more scripts than these are compared as a whole. */
const MAX_SCRIPTS = 200
/** Characters kept of the SHA-256 of a script. */
const LENGTH = 16

/** Keys of package.json that describe the package: all others may be settings of checks. */
export const PACKAGE_KEYS: ReadonlySet<string> = new Set(
  (
    'name version description keywords homepage bugs license licenses author contributors ' +
    'maintainers funding files main module browser exports bin man directories repository ' +
    'dependencies devDependencies peerDependencies peerDependenciesMeta optionalDependencies ' +
    'bundledDependencies bundleDependencies overrides resolutions engines os cpu libc private ' +
    'publishConfig workspaces type types typings typesVersions sideEffects unpkg jsdelivr ' +
    'packageManager react-native style sass es2015 jsnext:main source devEngines'
  ).split(' '),
)
/** Keys of tools that no test runs. */
const OTHER_KEYS = new Set(
  (
    'husky lint-staged commitlint release release-it semantic-release np ' +
    'standard-version auto-changelog changelog simple-git-hooks pre-commit gitHooks prettier ' +
    'browserslist size-limit bundlesize bundlewatch volta icon categories displayName publisher ' +
    'typedoc typedocOptions renovate nodemonConfig all-contributors verb sponsor collective ' +
    'readme readmeFilename gitHead contributes activationEvents'
  ).split(' '),
)

/** What formats of stored runs before 3 knew. */
const BEFORE = new Set([
  'scripts', 'config', 'jest', 'mocha', 'ava', 'tap', 'c8', 'nyc', 'vitest', 'eslintConfig', 'bun',
])

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
    const all = Object.entries(parsed).filter(
      ([key]) => !PACKAGE_KEYS.has(key) && !OTHER_KEYS.has(key),
    )
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
  const before = entries.filter(([key]) => BEFORE.has(key))
  const parts = [
    before.length === 0 ? '-' : hash('sha256', stable(Object.fromEntries(before))),
    hash('sha256', stable([Object.fromEntries(settings), Object.fromEntries(own)])),
    ...others.map((script) => hash('sha256', stable(script)).slice(0, LENGTH)).sort(),
  ]
  return PREFIX + parts.join(':')
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
  const [before, settings, ...scripts] = now.slice(PREFIX.length).split(':')
  if (!then.startsWith(PREFIX)) return then === before
  const [, settingsThen, ...scriptsThen] = then.slice(PREFIX.length).split(':')
  const found = new Set(scripts)
  return settings === settingsThen && scriptsThen.every((one) => found.has(one))
}

/** JSON with sorted keys, so that their order in package.json does not matter. */
export function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${stable(item)}`).join(',')}}`
}
