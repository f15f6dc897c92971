/**
 * Compares texts that describe the API with those in `test/api/accepted`. `accepted.json` has the
 * hash of each, and the line of CHANGELOG.md with which it was accepted.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const USAGE = "usage: npm run api [-- --accept 'line for CHANGELOG.md']"
const HELP = `If callers should see this change:
  npm run api -- --accept 'what changes for them, as a line for CHANGELOG.md'
After a merge, take one side of test/api/accepted, and accept the other side's line once more.`
const HEADING = '### API changes\n\n'
const SHOWN_LINES = 60

interface Acceptance {
  readonly sha256: string
  readonly changelog: string
}

/** What to print, and whether the command succeeded. */
export interface Outcome {
  readonly ok: boolean
  readonly text: string
}

/**
 * Checks the API of the repository at `root`, or accepts it with `--accept LINE`.
 *
 * @param current - today's descriptions by file name.
 */
export function guard(
  root: string,
  args: readonly string[],
  current: ReadonlyMap<string, string>,
): Outcome {
  const [option, line, ...others] = args
  const guarded = new Guarded(root, current)
  if (option === undefined) return guarded.check()
  if (option !== '--accept' || line === undefined || others.length > 0) return failed(USAGE)
  return guarded.accept(line.trim())
}

class Guarded {
  readonly #folder: string
  readonly #list: string
  readonly #changelog: string
  readonly #current: ReadonlyMap<string, string>

  constructor(root: string, current: ReadonlyMap<string, string>) {
    this.#folder = join(root, 'test/api/accepted')
    this.#list = join(this.#folder, 'accepted.json')
    this.#changelog = join(root, 'CHANGELOG.md')
    this.#current = current
    mkdirSync(this.#folder, { recursive: true })
  }

  check(): Outcome {
    const lines = [...this.#problems().values()].flat()
    if (lines.length === 0) return { ok: true, text: 'The API is as accepted.' }
    const more = lines.length - SHOWN_LINES
    const rest = more > 0 ? [`… and ${more} more lines`] : []
    return failed([...lines.slice(0, SHOWN_LINES), ...rest, HELP].join('\n'))
  }

  accept(line: string): Outcome {
    const changelog = readFileSync(this.#changelog, 'utf8')
    if (line === '' || line.includes('\n')) return failed('CHANGELOG.md needs one line of text.')
    if (mentions(changelog, line)) return failed(`CHANGELOG.md already has: ${line}`)
    const names = [...this.#problems().keys()]
    if (names.length === 0) return failed('Nothing to accept: the API is as accepted.')
    const accepted = this.#accepted()
    for (const name of names) {
      const text = this.#current.get(name)
      if (text === undefined) {
        rmSync(join(this.#folder, name), { force: true })
        accepted.delete(name)
      } else {
        writeFileSync(join(this.#folder, name), text)
        accepted.set(name, { sha256: hash(text), changelog: line })
      }
    }
    const list = Object.fromEntries([...accepted].sort())
    writeFileSync(this.#list, `${JSON.stringify(list, null, 2)}\n`)
    writeFileSync(this.#changelog, withEntry(changelog, line))
    return { ok: true, text: `Accepted ${names.join(', ')}.` }
  }

  /** Returns what is wrong with each description, if anything is. */
  #problems(): ReadonlyMap<string, readonly string[]> {
    const changelog = readFileSync(this.#changelog, 'utf8')
    const accepted = this.#accepted()
    const stored = readdirSync(this.#folder).filter((name) => name !== 'accepted.json')
    const names = [...new Set([...this.#current.keys(), ...accepted.keys(), ...stored])].sort()
    return new Map(
      names.flatMap((name) => {
        const before = stored.includes(name) ? readFileSync(join(this.#folder, name), 'utf8') : ''
        const after = this.#current.get(name) ?? ''
        const { sha256, changelog: line } = accepted.get(name) ?? NEVER_ACCEPTED
        const lines = before === after ? [] : [`${name} changed:`, ...difference(before, after)]
        if (hash(before) !== sha256) lines.unshift(`${name} was edited by hand, or merged`)
        if (!mentions(changelog, line)) lines.unshift(`CHANGELOG.md lost a line: ${line}`)
        return lines.length === 0 ? [] : [[name, lines]]
      }),
    )
  }

  #accepted(): Map<string, Acceptance> {
    const text = existsSync(this.#list) ? readFileSync(this.#list, 'utf8') : '{}'
    return new Map(Object.entries(JSON.parse(text) as Record<string, Acceptance>))
  }
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

const NEVER_ACCEPTED: Acceptance = { sha256: hash(''), changelog: '' }

const failed = (text: string): Outcome => ({ ok: false, text })

/** True if the changelog has a line, however it is wrapped. */
function mentions(changelog: string, line: string): boolean {
  return changelog.replaceAll(/\s+/g, ' ').includes(line.replaceAll(/\s+/g, ' '))
}

/** Adds a line to the API changes of the top section, newest first. */
function withEntry(changelog: string, line: string): string {
  const [head = '', top = '', ...others] = changelog.split(/^(?=## )/m)
  const gap = others.length > 0 ? '\n' : ''
  const section = top.includes(HEADING) ? top : `${top.trimEnd()}\n\n${HEADING}${gap}`
  return [head, section.replace(HEADING, () => `${HEADING}- ${line}\n`), ...others].join('')
}

/** Returns a diff without context lines: each hunk starts with what it is nested in. */
function difference(before: string, after: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'runwright-api-'))
  try {
    writeFileSync(join(folder, 'before'), before)
    writeFileSync(join(folder, 'after'), after)
    const options = ['--no-index', '--no-color', '--no-ext-diff', '-U0']
    const command = ['diff', ...options, 'before', 'after']
    const { stdout } = spawnSync('git', command, { cwd: folder, encoding: 'utf8' })
    const [oldLines, newLines] = [before.split('\n'), after.split('\n')]
    const lines = stdout.trimEnd().split('\n')
    return lines.slice(lines.findIndex((line) => line.startsWith('@@'))).map((line) => {
      const [, from, to, removed] = /^@@ -(\d+)\S* \+(\d+)(,0)?\S* @@/.exec(line) ?? []
      if (from === undefined) return line
      return removed === undefined ? hunk(newLines, Number(to)) : hunk(oldLines, Number(from))
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Returns what a line is nested in, by indentation: `@@ paths > /api/runs > get`. */
function hunk(lines: readonly string[], number: number): string {
  const path: string[] = []
  let indent = Infinity
  for (const line of lines.slice(0, number).reverse()) {
    const own = line.search(/\S/)
    if (own === -1 || own >= indent) continue
    if (indent !== Infinity) path.unshift(line.trim().replaceAll(/"|:? [[{]$/g, ''))
    indent = own
  }
  return ['@@', path.filter((name) => /\w/.test(name)).join(' > ')].join(' ').trimEnd()
}
