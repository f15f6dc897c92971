/**
 * The tables of options in docs/reference.md, made from the types and their comments:
 * `npm run reference` writes them, and a test compares the page with what this returns.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'
import { isOurs, LibProgram } from '../helpers/lib-program.js'
import { read, root } from '../helpers/markdown.js'

/** The page with the tables. */
export const PAGE = 'docs/reference.md'

/** A type of options, and the heading of its table. */
interface Source {
  readonly heading: string
  readonly module: string
  readonly type: string
}

const sources: readonly Source[] = [
  { heading: 'Engine options', module: 'agent', type: 'EngineOptions' },
  { heading: 'Service options', module: 'server', type: 'RunServiceOptions' },
]

/** Options that are objects, but no options: what hosts implement, or a table of its own. */
const notInside = new Set(['store', 'engine', 'providers[]', 'goals[]', 'tools[]', 'clock'])

/** One row of a table. */
export interface OptionRow {
  /** From the top: `limits.perTenant.runs`; `[]` stands for an element, `<id>` for any name. */
  readonly name: string
  readonly type: string
  /** Its words in the comment; `required`, or `none`. */
  readonly byDefault: string
  readonly does: string
}

/** The rows of each table, by heading. Takes seconds: it compiles `lib`. */
export function optionRows(): ReadonlyMap<string, readonly OptionRow[]> {
  const program = new LibProgram(sources.map(({ module }) => module))
  return new Map(
    sources.map(({ heading, module, type }) => {
      const symbol = program.exportsOf(module).find(({ name }) => name === type)
      if (symbol === undefined) throw new Error(`runwright/${module} exports no ${type}`)
      const rows = new Rows(program.checker)
      rows.add(program.checker.getDeclaredTypeOfSymbol(program.target(symbol)), '')
      return [heading, rows.rows]
    }),
  )
}

class Rows {
  readonly rows: OptionRow[] = []
  readonly #checker: ts.TypeChecker

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker
  }

  add(type: ts.Type, above: string): void {
    for (const property of this.#checker.getPropertiesOfType(type)) {
      const name = above + property.name
      // Both kinds of MCP server have the shared options.
      if (this.rows.some((row) => row.name === name)) continue
      this.rows.push(this.#row(property, name))
      this.#inside(this.#checker.getTypeOfSymbol(property), name)
    }
  }

  /** Adds the options of an option, where it is an object of them. */
  #inside(type: ts.Type, name: string): void {
    if (notInside.has(name)) return
    if (type.isUnion()) return type.types.forEach((one) => this.#inside(one, name))
    if ((type.flags & ts.TypeFlags.Object) === 0 && !type.isIntersection()) return
    if (this.#checker.isArrayLikeType(type)) {
      const [element] = this.#checker.getTypeArguments(type as ts.TypeReference)
      return element === undefined ? undefined : this.#inside(element, `${name}[]`)
    }
    const any = type.getStringIndexType()
    if (any !== undefined) return this.#inside(any, `${name}.<id>`)
    const properties = this.#checker.getPropertiesOfType(type)
    const isData = properties.every(
      ({ flags, declarations }) =>
        (flags & ts.SymbolFlags.Method) === 0 && isOurs(declarations?.[0]),
    )
    if (isData && type.getCallSignatures().length === 0) this.add(type, `${name}.`)
  }

  /** The text of a type, with the values that a name stands for in its place. */
  #withValues(node: ts.TypeNode): string {
    const named: ts.TypeReferenceNode[] = []
    const visit = (one: ts.Node): void => {
      if (ts.isTypeReferenceNode(one)) named.push(one)
      else ts.forEachChild(one, visit)
    }
    visit(node)
    let text = node.getText()
    for (const reference of named.reverse()) {
      const type = this.#checker.getTypeFromTypeNode(reference)
      if (!isValues(type) || type.types.length > MOST_VALUES) continue
      const values = type.types.map((one) => this.#checker.typeToString(one).replaceAll('"', "'"))
      const at = reference.getStart() - node.getStart()
      text = text.slice(0, at) + values.join(' | ') + text.slice(at + reference.getWidth())
    }
    return text
  }

  #row(property: ts.Symbol, name: string): OptionRow {
    const declaration = property.declarations![0] as ts.PropertySignature
    const tags = property.getJsDocTags(this.#checker)
    const stated = tags.find((tag) => tag.name === 'defaultValue')?.text
    const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0
    const comment = property.getDocumentationComment(this.#checker)
    return {
      name,
      type: typeText(this.#withValues(declaration.type!)),
      byDefault: plain(stated) || (isOptional ? 'none' : 'required'),
      does: firstSentence(plain(comment)),
    }
  }
}

/** Aliases of more values stay names. */
const MOST_VALUES = 6

function isValues(type: ts.Type): type is ts.UnionType {
  return type.isUnion() && type.types.every((one) => one.isStringLiteral())
}

/** A comment in one line, with links as code. */
function plain(parts: readonly ts.SymbolDisplayPart[] | undefined): string {
  return ts
    .displayPartsToString([...(parts ?? [])])
    .replaceAll(/\{@link (\S+?)\}/g, '`$1`')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** Without what says the same of every option. */
function typeText(text: string): string {
  return text
    .replace(/^\{[^}]* in keyof (\w+)\][^}]*\}/, 'Partial<$1>')
    .replaceAll(/\breadonly /g, '')
    .replaceAll(/\s+/g, ' ')
    .replace(/^\| /, '')
    .replace(/ \| undefined$/, '')
    .replace(/^\((\([^()]*\) => [^()]*)\)$/, '$1')
}

function firstSentence(text: string): string {
  return /^.*?[.?](?= [A-Z`]|$)/.exec(text)?.[0] ?? text
}

/** A literal at the beginning of a default. */
const literal = /^('[^']*'|\[\]|(?:true|false|null|\d+)$)/

const escaped = (text: string): string => text.replaceAll('|', '\\|')

/** A value as code, words as they are. */
function defaultText(text: string): string {
  return text.replace(literal, '`$1`')
}

function table(rows: readonly OptionRow[]): string {
  const lines = rows.map(({ name, type, byDefault, does }) => {
    const cells = [`\`${name}\``, `\`${type}\``, defaultText(byDefault), does]
    return `| ${cells.map(escaped).join(' | ')} |`
  })
  return ['| option | type | default | |', '|---|---|---|---|', ...lines].join('\n')
}

/** The page with its tables made anew; the text above each table stays. */
export function withTables(page: string, tables: ReturnType<typeof optionRows>): string {
  let text = page
  for (const [heading, rows] of tables) {
    const old = new RegExp(`(\\n## ${heading}\\n[^|]*?\\n)\\| [^]*?\\n(?=\\n|$)`)
    if (!old.test(text)) throw new Error(`${PAGE} has no table below ${heading}`)
    text = text.replace(old, (_all, above: string) => `${above}${table(rows)}\n`)
  }
  return text
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync(join(root, PAGE), withTables(read(PAGE), optionRows()))
}
