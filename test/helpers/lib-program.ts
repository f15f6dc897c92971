import ts from 'typescript'
import { root } from './markdown.js'

/** Modules of `lib`, compiled: takes seconds. */
export class LibProgram {
  readonly checker: ts.TypeChecker
  readonly #program: ts.Program

  /** Names of modules: `http`, `agent/testing`. */
  constructor(modules: readonly string[]) {
    const { config } = ts.readConfigFile(`${root}tsconfig.json`, (path) => ts.sys.readFile(path))
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
    const entries = modules.map(entryOf)
    this.#program = ts.createProgram(entries, { ...options, incremental: false })
    this.checker = this.#program.getTypeChecker()
  }

  /** What a module exports; aliases are not followed. */
  exportsOf(module: string): readonly ts.Symbol[] {
    const file = this.#program.getSourceFile(entryOf(module))!
    return this.checker.getExportsOfModule(this.checker.getSymbolAtLocation(file)!)
  }

  /** The symbol that an export stands for. */
  target(symbol: ts.Symbol): ts.Symbol {
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0
    return isAlias ? this.checker.getAliasedSymbol(symbol) : symbol
  }
}

/** Whether something is declared in `lib`. */
export function isOurs(declaration: ts.Node | undefined): boolean {
  return declaration?.getSourceFile().fileName.startsWith(`${root}lib/`) === true
}

function entryOf(module: string): string {
  return `${root}lib/${module}/index.ts`
}
