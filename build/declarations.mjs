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
  return withTabs(`${text}\n`)
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
  return left.length === 0 ? '' : withElements(statement, bindings, left)
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
  return left.length === 0 ? '' : withElements(statement, exportClause, left)
}

/**
 * @param {ts.Statement} statement
 * @param {ts.NamedImports | ts.NamedExports} list
 * @param {readonly (ts.ImportSpecifier | ts.ExportSpecifier)[]} left
 */
function withElements(statement, list, left) {
  const text = statement.getFullText()
  const [start, end] = [list.getStart(), list.getEnd()].map((at) => at - statement.getFullStart())
  const names = left.map((element) => element.getText()).join(', ')
  return `${text.slice(0, start)}{ ${names} }${text.slice(end)}`
}

/** @param {string} text */
function withTabs(text) {
  return text.replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4))
}
