/**
 * Cuts the declarations that the compiler writes down to what the entry points of the package
 * reach: an exported helper of the sources that no public type mentions is not shipped. Comments
 * stay. Indentation is by tabs.
 */
import { writeFileSync } from 'node:fs'
import ts from 'typescript'

/** @type {ts.CompilerOptions} */
const OPTIONS = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  noLib: true,
  types: [],
}

/** What a file says of itself, above its imports or a blank line: it is about the source. */
const HEADER = /^\/\*\*(?:(?!\*\/)[^])*\*\/\s*(?=import |export [*{]|\/\*\*|\n)/

/** @param {readonly string[]} entries Paths of the declarations of entry points. */
export function cutDeclarations(entries) {
  const program = ts.createProgram(entries, OPTIONS)
  const checker = program.getTypeChecker()
  const reached = statementsFrom(entries, program)
  const files = program.getSourceFiles().map((file) => [file.fileName, cut(file, reached, checker)])
  for (const [path = '', text = ''] of files) writeFileSync(path, text)
}

/** @param {readonly string[]} entries @param {ts.Program} program */
function statementsFrom(entries, program) {
  const checker = program.getTypeChecker()
  /** @type {Set<ts.Node>} */
  const reached = new Set()
  const reach = (/** @type {ts.Symbol | undefined} */ symbol) => {
    if (symbol === undefined) return
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0
    const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol
    for (const declaration of target.declarations ?? []) {
      if (!ts.isSourceFile(declaration)) reached.add(statementOf(declaration))
    }
  }
  for (const entry of entries) {
    const file = program.getSourceFile(entry)
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
    if (module !== undefined) checker.getExportsOfModule(module).forEach(reach)
  }
  const visit = (/** @type {ts.Node} */ node) => {
    if (ts.isIdentifier(node)) reach(checker.getSymbolAtLocation(node))
    ts.forEachChild(node, visit)
  }
  // What is reached on the way is visited as well.
  for (const statement of reached) visit(statement)
  return reached
}

/** @param {ts.Node} node @returns {ts.Node} */
function statementOf(node) {
  return ts.isSourceFile(node.parent) ? node : statementOf(node.parent)
}

/**
 * @param {ts.SourceFile} file
 * @param {ReadonlySet<ts.Node>} reached
 * @param {ts.TypeChecker} checker
 */
function cut(file, reached, checker) {
  const left = file.statements.filter((one) => reached.has(one) || isOfThisFile(one))
  const used = new Set(left.flatMap(identifiers))
  const parts = file.statements.map((statement) => {
    if (ts.isImportDeclaration(statement)) return importOf(statement, used)
    if (ts.isExportDeclaration(statement)) return exportOf(statement, reached, checker)
    return reached.has(statement) ? statement.getFullText() : ''
  })
  const text = parts.join('').trim().replace(HEADER, '')
  return withTabs(withShortComments(withoutMarks(withOneExportEach(`${text}\n`))))
}

/** Whether a statement exports names of its own file. @param {ts.Statement} statement */
function isOfThisFile(statement) {
  return ts.isExportDeclaration(statement) && statement.moduleSpecifier === undefined
}

/** The names in a statement, as they are written. @param {ts.Node} node @returns {string[]} */
function identifiers(node) {
  /** @type {string[]} */
  const names = []
  const visit = (/** @type {ts.Node} */ inner) => {
    if (ts.isIdentifier(inner)) names.push(inner.text)
    ts.forEachChild(inner, visit)
  }
  visit(node)
  return names
}

/** @param {ts.ImportDeclaration} statement @param {ReadonlySet<string>} used */
function importOf(statement, used) {
  const { importClause } = statement
  const bindings = importClause?.namedBindings
  if (importClause === undefined || bindings === undefined || !ts.isNamedImports(bindings))
    return statement.getFullText()
  const left = bindings.elements.filter(({ name }) => used.has(name.text))
  if (left.length === 0) return ''
  // Declarations import types only, whether they say so or not.
  const names = left.map((element) => element.getText().replace(/^type /, '')).join(', ')
  return withNames(statement, importClause, names)
}

/**
 * @param {ts.ExportDeclaration} statement
 * @param {ReadonlySet<ts.Node>} reached
 * @param {ts.TypeChecker} checker
 */
function exportOf(statement, reached, checker) {
  const { exportClause } = statement
  if (exportClause === undefined || !ts.isNamedExports(exportClause)) return statement.getFullText()
  if (exportClause.elements.length === 0) return statement.getFullText()
  const left = exportClause.elements.filter(({ name }) => {
    const symbol = checker.getSymbolAtLocation(name)
    const target = symbol === undefined ? undefined : checker.getAliasedSymbol(symbol)
    const all = target?.declarations ?? []
    return all.some((one) => ts.isSourceFile(one) || reached.has(statementOf(one)))
  })
  if (left.length === 0) return ''
  const isTypes = statement.isTypeOnly
  const names = left.map((element) => {
    const text = element.getText().replace(/^type /, '')
    return (isTypes || element.isTypeOnly) && isValue(element, checker) ? `type ${text}` : text
  })
  return withNames(statement, exportClause, names.join(', '))
}

/** @param {ts.ExportSpecifier} element @param {ts.TypeChecker} checker */
function isValue(element, checker) {
  const symbol = checker.getSymbolAtLocation(element.name)
  const target = symbol === undefined ? undefined : checker.getAliasedSymbol(symbol)
  return target !== undefined && (target.flags & ts.SymbolFlags.Value) !== 0
}

/**
 * @param {ts.ImportDeclaration | ts.ExportDeclaration} statement
 * @param {ts.Node} list What stands between the keyword and `from`.
 * @param {string} names
 */
function withNames(statement, list, names) {
  const text = statement.getFullText()
  const [start, end] = [statement.getStart(), list.getEnd()].map(
    (at) => at - statement.getFullStart(),
  )
  const keyword = ts.isImportDeclaration(statement) ? 'import' : 'export'
  return `${text.slice(0, start)}${keyword} { ${names} }${text.slice(end)}`
}

/** What is exported from one file, in one statement. @param {string} text */
function withOneExportEach(text) {
  /** @type {Map<string, string>} */
  const lists = new Map()
  const exported = /^export \{ (.*) \} from (.*);\n/gm
  for (const [, names = '', from = ''] of text.matchAll(exported)) {
    const before = lists.get(from)
    lists.set(from, before === undefined ? names : `${before}, ${names}`)
  }
  return text.replaceAll(exported, (_, _names, from) => {
    const names = lists.get(from)
    lists.delete(from)
    return names === undefined ? '' : `export { ${names} } from ${from};\n`
  })
}

/**
 * Without what declarations may go without, outside comments: semicolons at the ends of lines, as
 * everywhere in the sources, and `declare` after `export`.
 *
 * @param {string} text
 */
function withoutMarks(text) {
  return text.replaceAll(/(\/\*[^]*?\*\/)|;$|(?<=^export )declare /gm, (_, comment = '') => comment)
}

/** Comments begin and end on lines of their text, but for code. @param {string} text */
function withShortComments(text) {
  return text
    .replaceAll(/^( *)\/\*\*\n\s*\* (?!```|@|-)/gm, '$1/** ')
    .replaceAll(/(?<!```)\n\s+\*\/$/gm, ' */')
}

/** @param {string} text */
function withTabs(text) {
  return text.replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4))
}
