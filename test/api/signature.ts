/**
 * Signatures of a package: for each entry point, the declarations of its exports and of everything
 * that these refer to.
 *
 * 1. Declarations are emitted from the sources. `isolatedDeclarations` lets a file be emitted
 *    without its imports, so only files that public declarations import are compiled.
 * 2. Code that moves between files, imports, comments and formatting make no difference.
 * 3. Each name stands for one thing: namesakes are numbered in the order in which they are reached
 *    from the sorted exports, and a global with a namesake is written `globalThis.Name`.
 * 4. What an earlier entry point exports is imported from there.
 * 5. What a signature can't show is an error: namespaces, augmented globals and packages.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedDeclarations: true,
  declaration: true,
  emitDeclarationOnly: true,
  removeComments: true,
  noCheck: true,
  noResolve: true,
}

const PRINTER = ts.createPrinter({ removeComments: true })
const COLUMNS = 100
const EXPORT_KEYWORDS = new Set([ts.SyntaxKind.ExportKeyword, ts.SyntaxKind.DeclareKeyword])

/** What a name stands for: something declared in this package, or a name of another module. */
type Meaning = ts.Symbol | `${string} from ${string}`

/** Returns the signature of each entry point of the package at `root`, by specifier. */
export function signatures(root: string): ReadonlyMap<string, string> {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  }
  const entries = Object.entries(exports).flatMap(([path, target]) => {
    const source = typeof target === 'object' ? target['runwright-source'] : undefined
    return source === undefined ? [] : [[join(name, path), resolve(root, source)] as const]
  })
  const all = new Declarations(entries)
  return new Map(entries.map(([specifier]) => [specifier, new Signature(all, specifier).text()]))
}

/** Returns the declarations of `sources` and of what these import, by path. */
function emit(sources: readonly string[]): ReadonlyMap<string, string> {
  const host = ts.createCompilerHost(OPTIONS)
  const { getSourceFile } = host
  host.jsDocParsingMode = ts.JSDocParsingMode.ParseNone
  const parsed = new Map<string, ts.SourceFile | undefined>()
  host.getSourceFile = (path, ...how) => {
    if (!parsed.has(path)) parsed.set(path, getSourceFile(path, ...how))
    return parsed.get(path)
  }
  const emitted = new Map<string, string>()
  for (let left = sources; left.length > 0; ) {
    const program = ts.createProgram(left, OPTIONS, host)
    const imported = left.flatMap((path) => {
      const file = program.getSourceFile(path)
      if (file === undefined) throw new Error(`${path} is missing`)
      let text = ''
      const write = (_: string, written: string): void => void (text = written)
      const { diagnostics } = program.emit(file, write, undefined, true)
      for (const { messageText } of diagnostics)
        throw new Error(`${path}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`)
      emitted.set(declarationPath(path), text)
      return ts.preProcessFile(text).importedFiles.flatMap(({ fileName }) =>
        fileName.startsWith('.') ? [resolve(dirname(path), fileName.replace(/js$/, 'ts'))] : [],
      )
    })
    left = [...new Set(imported)].filter((path) => !emitted.has(declarationPath(path)))
  }
  return emitted
}

function declarationPath(source: string): string {
  return source.replace(/ts$/, 'd.ts')
}

/** The declarations that all entry points lead to. */
class Declarations {
  readonly checker: ts.TypeChecker
  readonly #entries = new Map<ts.Symbol, string>()
  /** Where each exported declaration is found first. */
  readonly #owners = new Map<Meaning, { readonly entry: string; readonly name: string }>()

  constructor(entries: readonly (readonly [entry: string, path: string])[]) {
    const texts = emit(entries.map(([, path]) => path))
    const options = { ...OPTIONS, noResolve: false, noLib: true }
    const program = ts.createProgram([...texts.keys()], options, {
      ...ts.createCompilerHost(options),
      fileExists: (path) => texts.has(path),
      getSourceFile: (path, how) => ts.createSourceFile(path, texts.get(path) ?? '', how, true),
    })
    this.checker = program.getTypeChecker()
    program.getSourceFiles().forEach(refuseAugmentations)
    for (const [entry, path] of entries) {
      const file = program.getSourceFile(declarationPath(path))!
      this.#entries.set(this.checker.getSymbolAtLocation(file)!, entry)
    }
    for (const [entry] of entries) {
      for (const symbol of this.exportsOf(entry)) {
        const meaning = this.#follow(symbol)
        if (!this.#owners.has(meaning)) this.#owners.set(meaning, { entry, name: symbol.name })
      }
    }
  }

  /** Returns the exports of an entry point, sorted by name. */
  exportsOf(entry: string): readonly ts.Symbol[] {
    const [module] = [...this.#entries].find(([, name]) => name === entry)!
    const exported = this.checker.getExportsOfModule(module)
    return exported.sort((a, b) => compare(a.name, b.name))
  }

  /** Returns what a symbol stands for in the signature of an entry point. */
  meaningOf(symbol: ts.Symbol, entry: string): Meaning {
    const meaning = this.#follow(symbol)
    const owner = this.#owners.get(meaning)
    if (owner === undefined || owner.entry === entry) return meaning
    return `${owner.name} from ${owner.entry}`
  }

  /** True if `export type` or `import type` is on the way to the declaration. */
  isTypeOnly(symbol: ts.Symbol): boolean {
    if ((symbol.flags & ts.SymbolFlags.Alias) === 0) return false
    if (symbol.declarations?.some(ts.isTypeOnlyImportOrExportDeclaration) === true) return true
    const next = this.checker.getImmediateAliasedSymbol(symbol)
    return next !== undefined && this.isTypeOnly(next)
  }

  #follow(symbol: ts.Symbol): Meaning {
    const target = this.checker.getExportSymbolOfSymbol(symbol)
    const entry = this.#entries.get(target)
    if (entry !== undefined) return `* from ${entry}`
    const [declaration] = target.declarations ?? []
    if ((target.flags & ts.SymbolFlags.Alias) === 0) {
      if (declaration !== undefined && ts.isSourceFile(declaration)) throw unshown(symbol.name)
      return target
    }
    const next = this.checker.getImmediateAliasedSymbol(target)
    if (next?.declarations !== undefined) return this.#follow(next)
    if (declaration === undefined || !ts.isImportSpecifier(declaration)) throw unshown(symbol.name)
    const { moduleSpecifier } = declaration.parent.parent.parent
    const { text } = declaration.propertyName ?? declaration.name
    return `${text} from ${(moduleSpecifier as ts.StringLiteral).text}`
  }
}

/** The signature of one entry point. */
class Signature {
  readonly #all: Declarations
  readonly #entry: string
  /** The names of everything that is reached. */
  readonly #names = new Map<Meaning, string>()
  readonly #taken: Set<string>

  constructor(all: Declarations, entry: string) {
    this.#all = all
    this.#entry = entry
    const symbols = all.exportsOf(entry)
    this.#taken = new Set(symbols.map(({ name }) => name))
    const own = symbols.flatMap((symbol) => {
      const meaning = all.meaningOf(symbol, entry)
      return typeof meaning === 'string' ? [] : [[meaning, symbol.name] as const]
    })
    for (const [meaning, name] of own) if (meaning.name === name) this.#names.set(meaning, name)
    for (const [meaning] of own) this.#nameOf(meaning)
    // Printing a declaration adds the names in it.
    for (const meaning of this.#names.keys()) this.#print(meaning)
  }

  text(): string {
    const inPlace = new Set<Meaning>()
    const lists: string[] = []
    for (const symbol of this.#all.exportsOf(this.#entry)) {
      const meaning = this.#all.meaningOf(symbol, this.#entry)
      const typeOnly = this.#all.isTypeOnly(symbol)
      const isHere = typeof meaning !== 'string'
      const name = isHere ? this.#nameOf(meaning) : meaning
      const isPlain = isHere && !(typeOnly && (meaning.flags & ts.SymbolFlags.Value) !== 0)
      if (isPlain && name === symbol.name) inPlace.add(meaning)
      else lists.push(`export ${typeOnly ? 'type ' : ''}${listed(name, symbol.name)}`)
    }
    const reached = [...this.#names].sort(([, a], [, b]) => compare(a, b))
    const imports = reached.flatMap(([meaning, name]) =>
      typeof meaning === 'string' ? [`import ${listed(meaning, name)}`] : [],
    )
    const declarations = reached.flatMap(([meaning]) =>
      this.#print(meaning).map((text) => `\n${inPlace.has(meaning) ? 'export ' : ''}${text}`),
    )
    return `${[...imports, ...lists, ...declarations].join('\n').trimStart()}\n`
  }

  #nameOf(meaning: Meaning): string {
    const known = this.#names.get(meaning)
    if (known !== undefined) return known
    const plain = typeof meaning === 'string' ? meaning.split(' ')[0]! : meaning.name
    if (plain === '*') throw unshown(String(meaning))
    let name = plain
    for (let number = 2; this.#taken.has(name); number++) name = `${plain}_${number}`
    this.#taken.add(name)
    this.#names.set(meaning, name)
    return name
  }

  #print(meaning: Meaning): readonly string[] {
    if (typeof meaning === 'string') return []
    const declarations = [...(meaning.declarations ?? [])]
    // The order of augmentations is that of imports.
    if (new Set(declarations.map((one) => one.getSourceFile())).size > 1)
      declarations.sort((a, b) => compare(a.getText(), b.getText()))
    return declarations.map((declaration) => {
      const node = this.#rewrite(declaration) ?? declaration
      const text = PRINTER.printNode(ts.EmitHint.Unspecified, node, declaration.getSourceFile())
      return format(ts.isVariableDeclaration(declaration) ? `const ${text}` : text)
    })
  }

  /** Returns a node with the names of this signature, without private members. */
  #rewrite(node: ts.Node): ts.Node | undefined {
    if (isPrivate(node) || EXPORT_KEYWORDS.has(node.kind)) return undefined
    if (ts.isIdentifier(node)) return ts.factory.createIdentifier(this.#identifier(node))
    if (ts.isStringLiteral(node)) return ts.factory.createStringLiteral(node.text, true)
    if (ts.isImportTypeNode(node) && /^.\./.test(node.argument.getText()))
      throw unshown(node.getText())
    return ts.visitEachChild(node, (one) => this.#rewrite(one), undefined)
  }

  #identifier(node: ts.Identifier): string {
    const symbol = this.#all.checker.getSymbolAtLocation(node)
    if (symbol !== undefined && isTopLevel(symbol))
      return this.#nameOf(this.#all.meaningOf(symbol, this.#entry))
    const isGlobal = symbol?.declarations === undefined && isReference(node)
    return isGlobal && this.#taken.has(node.text) ? `globalThis.${node.text}` : node.text
  }
}

/** True for what a file declares or imports, and for what it adds to another file. */
function isTopLevel({ flags, declarations = [] }: ts.Symbol): boolean {
  if ((flags & ts.SymbolFlags.Alias) !== 0) return true
  return declarations.some((one) => {
    const { parent } = ts.isVariableDeclaration(one) ? one.parent.parent : one
    return ts.isSourceFile(parent) || ts.isModuleBlock(parent)
  })
}

/** Private constructors count: they decide whether a class can be extended. */
function isPrivate(node: ts.Node): boolean {
  if (!ts.isClassElement(node) || ts.isConstructorDeclaration(node)) return false
  const isHash = node.name !== undefined && ts.isPrivateIdentifier(node.name)
  return isHash || (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Private) !== 0
}

/** True where a name refers to a type or value, and isn't that of a member or parameter. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isQualifiedName(parent)) return parent.left === node
  const tests = [ts.isTypeReferenceNode, ts.isTypeQueryNode, ts.isExpressionWithTypeArguments]
  return tests.some((test) => test(parent))
}

function refuseAugmentations({ fileName, statements }: ts.SourceFile): void {
  for (const statement of statements) {
    if (!ts.isModuleDeclaration(statement)) continue
    if (!ts.isStringLiteral(statement.name) || !statement.name.text.startsWith('.'))
      throw unshown(`${fileName}: ${statement.name.text}`)
  }
}

function unshown(what: string): Error {
  return new Error(`${what}: the API guard can't show namespaces, globals or other packages' types`)
}

/** Returns what stands behind `import` or `export`. */
function listed(meaning: string, as: string): string {
  const [name, from] = meaning.split(' from ')
  const list = name === '*' ? `* as ${as}` : name === as ? `{ ${as} }` : `{ ${name} as ${as} }`
  return from === undefined ? list : `${list} from '${from}'`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

/** Indents by two spaces, and gives each literal of a long union a line of its own. */
function format(text: string): string {
  const lines = text.replaceAll(/;$/gm, '').split('\n')
  const indented = lines.map((line) => {
    const content = line.trimStart()
    const indent = ' '.repeat((line.length - content.length) / 2)
    const isLong = indent.length + content.length > COLUMNS
    return indent + (isLong ? content.replaceAll(/ \| (?=')/g, `\n${indent}  | `) : content)
  })
  return indented.join('\n')
}
