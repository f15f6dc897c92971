/**
 * Some files hold test configuration beside settings that an agent may have to change:
 * `package.json` has scripts and dependencies, `pyproject.toml` has pytest's options and the
 * project's version. Only the part that a check depends on is protected.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import { hashPackage, stable } from './package-hash.js'

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

/**
 * Splits the name of a part that belongs to a check although its file does not, or not as a whole:
 * `package.json#version` is the value of a key, `guide.md#sample:0f3a…` a sample with this hash.
 */
export function splitPart(path: string): readonly [file: string, part: string] | null {
  const match = /^(.*)#([\w-]+|sample:[0-9a-f]{16})$/s.exec(path)
  if (match === null) return null
  const [, file, part] = match
  const isPart = part!.includes(':') || /(?:^|\/)package\.json$/.test(file!)
  return isPart ? [file!, part!] : null
}

/** True for the name of a file that is protected only in part. */
export function hasRelevantPart(name: string): boolean {
  if (splitPart(name) !== null) return true
  return name === 'package.json' || Object.hasOwn(SECTIONS, name)
}

/**
 * The hash of the protected part of such a file, independent of layout; null when the file has no
 * such part.
 */
export function hashRelevantPart(name: string, content: string): string | null {
  const part = splitPart(name)?.[1]
  if (part === undefined && name === 'package.json') return hashPackage(content)
  const found = part === undefined ? sections(name, content) : namedPart(part, content)
  return found === null ? null : hash('sha256', found)
}

function sections(name: string, content: string): string | null {
  const wanted = SECTIONS[name]
  return wanted === undefined ? content : sectionPart(content, wanted)
}

function namedPart(part: string, content: string): string | null {
  if (!part.startsWith('sample:')) return packagePart(content, part)
  return samplesIn(content).some((one) => sampleKey(one) === part) ? part : null
}

/**
 * Paragraphs of code in a text for people: what is fenced, indented by four columns, or a session
 * of Python.
 */
export function samplesIn(content: string): readonly string[] {
  const samples: string[][] = [[]]
  let fence: string | null = null
  let isSession = false
  for (const line of content.split(/\r?\n/)) {
    isSession = line.startsWith('>>> ') || (isSession && line.trim() !== '')
    const mark = /^[ ]{0,3}(```+|~~~+|-{4,}$)/.exec(line)?.[1] ?? null
    if (fence === null ? mark !== null : mark?.startsWith(fence) === true) {
      fence = fence === null ? mark : null
      isSession = false
      samples.push([])
    } else if (line.trim() === '') samples.push([])
    else if (isSession || fence !== null || /^(?: {4}|\t)/.test(line)) {
      samples.at(-1)!.push(line.trim())
    } else samples.push([])
  }
  const texts = samples.map((lines) => lines.join('\n').trim()).filter((text) => text !== '')
  return texts.slice(0, MAX_SAMPLES)
}
const MAX_SAMPLES = 100

/** The name of a sample as a part of its file. */
export function sampleKey(sample: string): string {
  return `sample:${hash('sha256', sample).slice(0, 16)}`
}

/** The value of one key of a package.json, which is there or not. */
function packagePart(content: string, key: string): string {
  try {
    const parsed = JSON.parse(content.replace(/^\uFEFF/, '')) as Record<string, unknown>
    if (typeof parsed !== 'object' || parsed === null) return content
    const valueOf = (one: string): unknown => parsed[one] ?? null
    return stable(key === ENTRY ? ENTRY_KEYS.map(valueOf) : valueOf(key))
  } catch {
    // Not JSON, or nested more deeply than the stack allows.
    return content
  }
}

/** What an import of the package leads to. */
const ENTRY = 'entry'
const ENTRY_KEYS = ['type', 'main', 'module', 'browser', 'exports']

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
