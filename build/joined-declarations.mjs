/**
 * Joins the declarations of one module of the package in one file: what its files import from each
 * other would be a tenth of all declarations. The entry points stay, and export from there what
 * they did. Where a name means two things in two files, the build fails.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import ts from 'typescript'

/**
 * @param {string} folder Of the module.
 * @param {readonly string[]} entries Paths of its entry points.
 * @param {readonly string[]} others Paths of its other declarations.
 * @returns {string} Where these are now.
 */
export function joinDeclarations(folder, entries, others) {
  const files = others.map(parsed)
  const names = new Names()
  for (const file of files) names.declare(file)
  for (const file of files) names.use(file, others)
  const imports = [...names.imports].map(
    ([from, list]) => `import { ${[...list].join(', ')} } from '${written(from, folder)}'\n`,
  )
  const bodies = files.map(({ statements }) => statements.map(bodyOf).join('').trim())
  for (const path of others) rmSync(path)
  const place = resolve(folder, 'types.d.ts')
  // The last line: what has no `export` is not exported.
  writeFileSync(place, `${imports.join('')}${bodies.join('\n')}\nexport {}\n`)
  for (const entry of entries) joinExports(entry, others, place)
  return place
}

/** What the names at the top level of joined files mean. */
class Names {
  /** By the path, or the module of Node, that they come from. @type {Map<string, Set<string>>} */
  imports = new Map()
  /** @type {Map<string, string>} */
  #meanings = new Map()

  /** @param {ts.SourceFile} file */
  declare(file) {
    for (const name of file.statements.flatMap(declaredBy)) this.#define(name, file.fileName)
  }

  /** @param {ts.SourceFile} file @param {readonly string[]} joined */
  use(file, joined) {
    const known = new Set(file.statements.flatMap(declaredBy))
    for (const statement of file.statements.filter(ts.isImportDeclaration)) {
      const from = targetOf(statement)
      for (const { name, text } of elementsOf(statement.importClause?.namedBindings)) {
        known.add(name)
        if (joined.includes(from)) continue
        this.#define(name, `${from} ${text}`)
        this.imports.set(from, (this.imports.get(from) ?? new Set()).add(text))
      }
    }
    // A type of the platform would become one of ours.
    const isForeign = (/** @type {string} */ name) => !known.has(name) && this.#meanings.has(name)
    const wrong = typesIn(file).find(isForeign)
    if (wrong !== undefined) throw new Error(`${file.fileName}: ${wrong} means something else`)
  }

  /** @param {string} name @param {string} meaning */
  #define(name, meaning) {
    const before = this.#meanings.get(name) ?? meaning
    if (before !== meaning) throw new Error(`${name} is of ${before} and of ${meaning}`)
    this.#meanings.set(name, meaning)
  }
}

/** @param {string} path */
function parsed(path) {
  return ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
}

/** @param {ts.Statement} statement @returns {string[]} */
function declaredBy(statement) {
  if (isAugmentation(statement)) return []
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText())
  const { name } = /** @type {{ name?: ts.Node }} */ (/** @type {unknown} */ (statement))
  return name === undefined ? [] : [name.getText()]
}

/** The first names of all types that a file mentions. @param {ts.Node} file @returns {string[]} */
function typesIn(file) {
  /** @type {string[]} */
  const found = []
  const visit = (/** @type {ts.Node} */ node) => {
    const named = ts.isTypeReferenceNode(node)
      ? node.typeName
      : ts.isTypeQueryNode(node)
        ? node.exprName
        : ts.isExpressionWithTypeArguments(node)
          ? node.expression
          : undefined
    const [first] = named?.getText().split('.') ?? []
    if (first !== undefined) found.push(first)
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

/** What is left of a statement in the file of all. @param {ts.Statement} statement */
function bodyOf(statement) {
  if (ts.isImportDeclaration(statement)) return ''
  if (!ts.isExportDeclaration(statement))
    return isAugmentation(statement) ? inside(statement) : statement.getFullText()
  // What a file exports from another is exported there.
  const isRenamed = elementsOf(statement.exportClause).some(({ name, text }) => name !== text)
  if (isRenamed) throw new Error(`${statement.getText()} cannot be joined`)
  return ''
}

/**
 * Whether it adds to what another file declares: `declare module './errors.js' {}`.
 *
 * @param {ts.Statement} statement
 * @returns {statement is ts.ModuleDeclaration}
 */
function isAugmentation(statement) {
  return ts.isModuleDeclaration(statement) && ts.isStringLiteral(statement.name)
}

/** @param {ts.ModuleDeclaration} augmentation */
function inside({ body }) {
  const statements = body !== undefined && ts.isModuleBlock(body) ? [...body.statements] : []
  return statements
    .map((one) => `\nexport ${one.getText().replaceAll(/^\t/gm, '')}`)
    .join('')
}

/**
 * The path of other declarations, or the name of a module of Node.
 *
 * @param {ts.ImportDeclaration | ts.ExportDeclaration} statement
 */
function targetOf(statement) {
  const name = statement.moduleSpecifier?.getText().slice(1, -1) ?? ''
  const folder = dirname(statement.getSourceFile().fileName)
  return name.startsWith('.') ? resolve(folder, name).replace(/\.js$/, '.d.ts') : name
}

/** @param {string} target As {@link targetOf} tells it. @param {string} folder */
function written(target, folder) {
  if (!target.endsWith('.d.ts')) return target
  const path = relative(folder, target).replace(/\.d\.ts$/, '.js')
  return path.startsWith('.') ? path : `./${path}`
}

/** @param {ts.Node | undefined} list Between braces. */
function elementsOf(list) {
  if (list === undefined || !(ts.isNamedImports(list) || ts.isNamedExports(list)))
    throw new Error(`${list?.getText() ?? 'a star'} is no list of names`)
  const elements = /** @type {readonly (ts.ImportSpecifier | ts.ExportSpecifier)[]} */ (
    list.elements
  )
  return elements.map((element) => ({ name: element.name.text, text: element.getText() }))
}

/**
 * @param {string} entry
 * @param {readonly string[]} joined
 * @param {string} place Where they are now.
 */
function joinExports(entry, joined, place) {
  /** @type {string[]} */
  const names = []
  const rest = parsed(entry).statements.filter((statement) => {
    if (!ts.isExportDeclaration(statement) || !joined.includes(targetOf(statement))) return true
    names.push(...elementsOf(statement.exportClause).map(({ text }) => text))
    return false
  })
  const list = `export { ${names.join(', ')} } from '${written(place, dirname(entry))}'`
  writeFileSync(entry, `${[list, ...rest.map((one) => one.getText())].join('\n')}\n`)
}
