/**
 * Some files hold test configuration beside settings that an agent may have to change:
 * `package.json` has scripts and dependencies, `pyproject.toml` has pytest's options and the
 * project's version. Only the part that a check depends on is protected.
 *
 * @module
 */
import { hash } from 'node:crypto'
import { hashPackage } from './package-hash.js'

/** Prefixes of the sections that a check depends on, by file name. */
const SECTIONS: { readonly [name: string]: readonly string[] } = {
  'pyproject.toml': ['tool.pytest', 'tool.ruff', 'tool.coverage'],
  'setup.cfg': ['tool:pytest', 'coverage:', 'flake8'],
  'tox.ini': ['pytest', 'tool:pytest'],
  'Cargo.toml': [
    'lib', 'test', 'bin', 'bench', 'profile', 'lints',
    'workspace.members', 'workspace.exclude', 'workspace.default',
  ],
}

/** True for the name of a file that is protected only in part. */
export function hasRelevantPart(name: string): boolean {
  return name === 'package.json' || Object.hasOwn(SECTIONS, name)
}

/**
 * The hash of the protected part of such a file, independent of layout; null when the file has no
 * such part.
 */
export function hashRelevantPart(name: string, content: string): string | null {
  if (name === 'package.json') return hashPackage(content)
  const sections = SECTIONS[name]
  const part = sections === undefined ? content : sectionPart(content, sections)
  return part === null ? null : hash('sha256', part)
}

/**
 * The wanted sections of an INI or TOML file, line by line. A line that may belong to a wanted
 * table in another spelling (dotted keys under a parent table, escapes in a quoted name) is
 * included: one line too many costs a false alarm, one too few would let an agent edit its grader.
 */
function sectionPart(content: string, wanted: readonly string[]): string | null {
  const kept: string[] = []
  let table = ''
  let taking = false
  for (const raw of content.split(/\r?\n/)) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#') || line.startsWith(';')) continue
    const header = /^\[\[?([^\]]*)\]/.exec(line)
    if (header !== null) {
      table = plain(header[1]!)
      taking = line.includes('\\') || wanted.some((name) => table.startsWith(name))
      if (taking) kept.push(line)
      continue
    }
    const [name, value] = keyAndValue(line)
    const key = plain(name)
    const full = table === '' ? key : `${table}.${key}`
    // An inline table may hold a wanted one, and go on in the next lines.
    taking ||= value.startsWith('{') && wanted.some((one) => one.startsWith(`${full}.`))
    taking ||= name.includes('\\')
    if (taking || wanted.some((one) => full.startsWith(one))) kept.push(line)
  }
  return kept.length === 0 ? null : kept.join('\n')
}

/** What stands before and after the first `=` of a line. */
function keyAndValue(line: string): readonly [key: string, value: string] {
  const end = line.indexOf('=')
  return end === -1 ? [line, ''] : [line.slice(0, end), line.slice(end + 1).trim()]
}

/** A name without quotes and white space, which TOML allows around it. */
function plain(name: string): string {
  return name.replace(/[\s"']/g, '')
}
