import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import {
  CONTINUES,
  documents,
  listFiles,
  markdown,
  parseMarkdown,
  read,
  root,
  samples,
  type Block,
} from './helpers/markdown.js'

// Links

/** The anchors of a document's headings, by the rules of GitHub. */
function anchorsOf(document: string): Set<string> {
  const anchors = new Set<string>()
  const { prose } = markdown.get(document) ?? parseMarkdown(document)
  for (const line of prose) {
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1]
    if (heading === undefined) continue
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-')
    let anchor = slug
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`
    anchors.add(anchor)
  }
  return anchors
}

interface Link {
  readonly target: string
  readonly line: number
}

function linksOf(document: string): Link[] {
  return markdown.get(document)!.prose.flatMap((line, index) => {
    const text = line.replaceAll(/(`+).*?\1/g, '')
    const inline = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)]
    const references = [...text.matchAll(/^\s*\[[^\]]+\]:\s*<?([^\s>]+)>?/g)]
    return [...inline, ...references].map((match) => ({ target: match[1]!, line: index + 1 }))
  })
}

const isRelative = ({ target }: Link): boolean => !/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target)

/** What is wrong with a relative link, or null. */
function problemOf(document: string, { target }: Link): string | null {
  const [path = '', anchor] = target.split('#')
  const goal = resolve(root, dirname(document), decodeURI(path))
  const file = path === '' ? document : relative(root, goal)
  if (target.startsWith('/') || file.startsWith('..')) return 'leads out of the repository'
  if (file.startsWith('docs/api')) return 'leads to a generated file'
  if (!existsSync(join(root, file))) return 'leads to a missing file'
  if (anchor === undefined || statSync(join(root, file)).isDirectory()) return null
  if (!file.endsWith('.md')) return 'has an anchor, but does not lead to a document'
  return anchorsOf(file).has(anchor) ? null : 'leads to a missing heading'
}

for (const document of documents) {
  test(`every relative link of ${document} leads to an existing file`, () => {
    const wrong = linksOf(document).filter(isRelative).flatMap((link) => {
      const problem = problemOf(document, link)
      return problem === null ? [] : [`${document}:${link.line}: ${link.target} ${problem}`]
    })
    assert.deepEqual(wrong, [])
  })
}

test('docs/index.md leads to every document', () => {
  const linked = new Set(linksOf('docs/index.md').map(({ target }) => join('docs', target)))
  // The pictures are not shipped, and have a page of their own.
  const own = documents.filter((path) => /^docs\/(?!images\/)/.test(path))
  const missing = own.filter((path) => !linked.has(path))
  assert.deepEqual(missing, ['docs/index.md'])
})

test('the link check finds links', () => {
  const count = documents.reduce((sum, path) => sum + linksOf(path).filter(isRelative).length, 0)
  assert.ok(count >= 20, `found only ${count} relative links`)
})

// The README

for (const command of ['npm ci && npm start', 'npm ci && npm test']) {
  test(`the README shows \`${command}\` on its own line`, () => {
    const lines = read('README.md').split('\n').map((line) => line.trim())
    assert.ok(lines.includes(command))
  })
}

test('the README shows the demo, and is under 200 lines', () => {
  assert.match(read('README.md'), /npm run demo/)
  assert.ok(read('README.md').split('\n').length < 200)
})

// Samples

test('there are samples, and each is a whole program or continues one', () => {
  assert.ok(samples.length >= 35, `found only ${samples.length} samples`)
  const isKnown = ({ info }: Block): boolean => info === 'ts' || info === CONTINUES
  assert.deepEqual(samples.filter((sample) => !isKnown(sample)), [])
})

// docs/errors.md

/** Rows of the tables below a heading of docs/errors.md, without table heads. */
function rowsOf(heading: string): string[][] {
  const { prose } = markdown.get('docs/errors.md')!
  const from = prose.indexOf(`## ${heading}`)
  assert.ok(from >= 0, `docs/errors.md has no heading ${heading}`)
  const next = prose.findIndex((line, index) => index > from && line.startsWith('## '))
  const lines = prose.slice(from, next < 0 ? undefined : next)
  const isRule = (line = ''): boolean => /^\|[-\s|]+$/.test(line)
  return lines
    .filter((line, index) => line.startsWith('|') && !isRule(line) && !isRule(lines[index + 1]))
    .map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()))
}

const plain = (cell: string | undefined): string => (cell ?? '').replaceAll('`', '')

/** What the first group of a pattern matches, everywhere. */
function allOf(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => match[1]!)
}

/** String literals of a union type of a source file, unions that it names included. */
function unionOf(source: string, name: string): string[] {
  const body = new RegExp(`export type ${name} =([^]*?)(?:\\n\\n|$)`).exec(source)?.[1]
  assert.ok(body !== undefined, `there is no type ${name}`)
  const named = [...body.matchAll(/\|\s*([A-Z]\w+)/g)]
  return [...allOf(body, /'(\w+)'/g), ...named.flatMap((match) => unionOf(source, match[1]!))]
}

const literalsOf = (folder: string, pattern: RegExp): string[] =>
  listFiles(folder, '.ts').flatMap((path) => allOf(read(path), pattern))

/** What the service closes streams with, and what the WebSocket server below it does. */
const closeCodes = [
  ...allOf(read('lib/server/streams/websocket.ts'), /(?:\[|close\()(\d{4}),/g),
  ...allOf(read('lib/ws/errors.ts'), /closeCode = (\d{4})/g),
]

for (const { what, heading, column, codes, least } of [
  {
    what: 'code of runwright/http',
    heading: 'HTTP client',
    column: 0,
    codes: literalsOf('lib/http', /'(ERR_HTTP(?:_[A-Z]+)*)'/g),
    least: 30,
  },
  {
    what: 'code of runwright/ws',
    heading: 'WebSocket server',
    column: 0,
    codes: literalsOf('lib/ws', /'(ERR_WS_[A-Z_]+)'/g),
    least: 7,
  },
  {
    what: 'code of runwright/agent',
    heading: 'Run engine',
    column: 0,
    codes: literalsOf('lib/agent', /'(ERR_AGENT_[A-Z_]+)'/g),
    least: 24,
  },
  {
    what: 'code of a problem document',
    heading: 'Service',
    column: 1,
    codes: unionOf(read('lib/server/errors.ts'), 'ProblemCode'),
    least: 25,
  },
  {
    what: 'end reason of a run',
    heading: 'Why a run ended',
    column: 0,
    codes: unionOf(read('lib/agent/run-status.ts'), 'EndReason'),
    least: 14,
  },
  {
    what: 'close code of the event stream',
    heading: 'Close codes of the event stream',
    column: 0,
    codes: closeCodes,
    least: 8,
  },
]) {
  test(`docs/errors.md lists every ${what} once, and no other`, () => {
    const known = [...new Set(codes)].sort()
    assert.ok(known.length >= least, `found only ${known.length} in the sources`)
    assert.deepEqual(rowsOf(heading).map((row) => plain(row[column])).sort(), known)
  })
}

/** The codes of each error class in an `errors.ts`: its literal, or all of its union. */
function classesOf(path: string): Map<string, readonly string[]> {
  const source = read(path)
  const classes = source.split(/^export (?:abstract )?class /m).slice(1)
  return new Map(
    classes.flatMap((text): [string, readonly string[]][] => {
      const declared = /^  (?:override )?readonly code(?:: (\w+))?(?: = '(\w+)')?/m.exec(text)
      const [, type, literal] = declared ?? []
      const name = /^\w+/.exec(text)![0]
      if (literal !== undefined) return [[name, [literal]]]
      return type === undefined ? [] : [[name, unionOf(source, type)]]
    }),
  )
}

for (const [heading, path] of [
  ['HTTP client', 'lib/http/errors.ts'],
  ['WebSocket server', 'lib/ws/errors.ts'],
  ['Run engine', 'lib/agent/errors.ts'],
] as const) {
  test(`docs/errors.md names the class of each code of ${path}`, () => {
    const classes = classesOf(path)
    const expected = [...classes].flatMap(([name, codes]) => codes.map((code) => `${code} ${name}`))
    const listed = rowsOf(heading).flatMap(([code, cell]) => {
      const name = /`(\w+Error)`/.exec(cell ?? '')?.[1]
      return name === undefined ? [] : [`${plain(code)} ${name}`]
    })
    assert.ok(expected.length > 5)
    assert.deepEqual(listed.sort(), expected.sort())
  })
}

test('docs/errors.md names the close code of each WebSocket error', () => {
  const pattern = /code = '(\w+)'\s+override readonly closeCode = (\d+)/g
  const codes = [...read('lib/ws/errors.ts').matchAll(pattern)]
  const expected = codes.map(([, code, closeCode]) => `${code} ${closeCode}`)
  const listed = rowsOf('WebSocket server').flatMap(([code, cell]) => {
    const closeCode = /\((\d+)\)/.exec(cell!)?.[1]
    return closeCode === undefined ? [] : [`${plain(code)} ${closeCode}`]
  })
  assert.ok(expected.length >= 7)
  assert.deepEqual(listed.sort(), expected.sort())
})

/** Statuses by problem code, from the throw statements of the service. */
function thrownProblems(): Map<string, string> {
  const statuses = new Map<string, string>()
  for (const path of listFiles('lib/server', '.ts')) {
    const source = read(path).replaceAll(/\/\*\*[^]*?\*\//g, '')
    for (const [, status, code] of source.matchAll(/new ProblemError\(\s*(\d{3}),\s*'(\w+)'/g)) {
      statuses.set(code!, status!)
    }
    for (const [, status, code] of source.matchAll(/\[(\d{3}), '(\w+)'\]/g)) {
      statuses.set(code!, status!)
    }
    for (const [, status, table] of source.matchAll(/new ProblemError\(\s*(\d{3}),\s*(\w+)\[/g)) {
      const body = new RegExp(`const ${table}[^=]*= \\{([^}]*)\\}`).exec(source)?.[1] ?? ''
      for (const [, code] of body.matchAll(/: '(\w+)'/g)) statuses.set(code!, status!)
    }
  }
  return statuses
}

test('docs/errors.md names the status of each problem', () => {
  const thrown = thrownProblems()
  assert.ok(thrown.size >= 25, `found only ${thrown.size} in the sources`)
  for (const [status, cell, when] of rowsOf('Service')) {
    const code = plain(cell)
    if (thrown.has(code)) assert.equal(status, thrown.get(code), code)
    else assert.match(when ?? '', /^never by the service itself/, `${code} is never thrown`)
  }
})
