/**
 * Every regular expression in the sources takes linear time on every text. Literals are read out of
 * the sources; those that are put together are recorded while the modules that do it are loaded.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import type { Node } from 'typescript'
import { withLoader } from './helpers/programs.js'
import { growthOf } from './helpers/regexp-growth.js'

/** Expressions that are put together only when a function is called, with what they look like. */
const AT_CALL: Readonly<
  Record<string, { readonly why: string; readonly likes: readonly string[] }>
> = {
  'lib/agent/goals/sealed/owners.ts': {
    why: 'the name of a file or of a function, without signs of its own',
    likes: [
      '(?<![\\w-])name(?![\\w-])',
      String.raw`(?:>|\btee(?:[ \t]+-a)?)[ \t]*["']?(?:[\w.$/-]{0,200}/)?name(?![\w.-])`,
    ],
  },
  'lib/agent/json-schema/compile.ts': {
    why: 'patterns of the program itself: those of MCP servers are matched by linear-pattern.ts',
    likes: [],
  },
  'lib/agent/json-schema/linear-pattern.ts': {
    why: 'what a single character of a pattern accepts',
    likes: ['^[a-z]$'],
  },
  'lib/agent/stores/page-scan.ts': {
    why: 'a word of a search, which MAX_SEARCH bounds, without signs of its own',
    likes: ['word\\.\\*'],
  },
}

/** Expressions that only see texts of a bounded length: the bound, and where it is enforced. */
const BOUNDED: readonly { readonly file: string; readonly begins: string; readonly why: string }[] =
  [
    {
      file: 'lib/agent/redaction/contexts.ts',
      begins: '(?::\\/\\/[^\\s/?#',
      why: 'the end of a line, cut to MAX_OPEN characters in openContextAt()',
    },
  ]

interface Found {
  readonly place: string
  readonly source: string
  readonly flags: string
}

interface Sources {
  readonly literals: readonly Found[]
  /** Where expressions are put together when a function is called, and when a module is loaded. */
  readonly atCall: readonly string[]
  readonly atLoad: readonly string[]
}

async function readSources(): Promise<Sources> {
  const { default: ts } = await import('typescript')
  const found = { literals: [] as Found[], atCall: [] as string[], atLoad: [] as string[] }
  const files = readdirSync('lib', { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:js|ts)$/.test(name) && !name.endsWith('.d.ts'))
    .map((name) => `lib/${name}`)
  for (const file of files) {
    const parsed = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest)
    const place = (node: Node): string =>
      `${file}:${parsed.getLineAndCharacterOfPosition(node.getStart(parsed)).line + 1}`
    const visit = (node: Node, inFunction: boolean): void => {
      if (ts.isRegularExpressionLiteral(node)) {
        const end = node.text.lastIndexOf('/')
        const [source, flags] = [node.text.slice(1, end), node.text.slice(end + 1)]
        found.literals.push({ place: place(node), source, flags })
      } else if (ts.isNewExpression(node) || ts.isCallExpression(node)) {
        const callee = node.expression
        const isRegExp = ts.isIdentifier(callee) && callee.text === 'RegExp'
        if (isRegExp) (inFunction ? found.atCall : found.atLoad).push(place(node))
      }
      const inside = inFunction || ts.isFunctionLike(node)
      ts.forEachChild(node, (child) => visit(child, inside))
    }
    visit(parsed, false)
  }
  return found
}

/** Loads the modules, and returns the expressions that are constructed meanwhile. */
function constructedWhileLoading(files: Iterable<string>): readonly Found[] {
  const child = fileURLToPath(new URL('./regexps-child.ts', import.meta.url))
  const output = execFileSync(process.execPath, [...withLoader, child, ...files])
  return JSON.parse(String(output)) as Found[]
}

test('every regular expression takes linear time', async () => {
  const fileOf = (place: string): string => place.replace(/:\d+$/, '')
  const { literals, atCall, atLoad } = await readSources()
  assert.ok(literals.length > 300, `only ${literals.length} were found`)
  const constructed = constructedWhileLoading(new Set([...atLoad, ...atCall].map(fileOf)))
  const made = new Set(constructed.map(({ place }) => place))
  assert.deepEqual(atLoad.filter((place) => !made.has(place)), [], 'not made when it is loaded')
  const listed = new Set(atCall.filter((place) => !made.has(place)).map(fileOf))
  assert.deepEqual([...listed].sort(), Object.keys(AT_CALL).sort())
  const alike = Object.entries(AT_CALL).flatMap(([place, { likes }]) =>
    likes.map((source) => ({ place, source, flags: '' })),
  )
  const unused = new Set(BOUNDED)
  const isBounded = ({ place, source }: Found): boolean => {
    const entry = BOUNDED.find(
      ({ file, begins }) => fileOf(place) === file && source.startsWith(begins),
    )
    if (entry !== undefined) unused.delete(entry)
    return entry !== undefined
  }
  const growing = [...literals, ...constructed, ...alike].flatMap((found) => {
    const growth = isBounded(found) ? null : growthOf(found.source, found.flags)
    return growth === null ? [] : `${found.place}: /${found.source}/${found.flags} is ${growth}`
  })
  assert.deepEqual(growing, [])
  assert.deepEqual([...unused], [], 'entries of BOUNDED that match nothing')
})
