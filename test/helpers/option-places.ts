/**
 * Every place of the public API that takes options, found in the types: parameters of exported
 * functions, constructors and methods, and of the methods of what they return.
 */
import ts from 'typescript'
import { isOurs, LibProgram } from './lib-program.js'

const modules = ['http', 'ws', 'agent', 'agent/testing', 'server']

/** A parameter, or an option that is an object itself. */
export interface OptionPlace {
  /** `http.AsyncClient.get#options`: module, export, method, parameter. */
  readonly parameter: string
  /** From there: `''`, `timeout`, `webhooks.endpoints[0]`. */
  readonly path: string
  /** The type's name, or its text. */
  readonly type: string
  readonly names: readonly string[]
  /** Names of the options that are numbers. */
  readonly numbers: readonly string[]
}

/** Lists the places in the order of the exports. Takes seconds: it compiles `lib`. */
export function optionPlaces(): readonly OptionPlace[] {
  const program = new LibProgram(modules)
  const walk = new Walk(program)
  for (const module of modules) walk.exports(module)
  return [...walk.places.values()]
}

class Walk {
  readonly places = new Map<string, OptionPlace>()
  readonly #program: LibProgram
  readonly #checker: ts.TypeChecker
  readonly #returned = new Set<ts.Type>()

  constructor(program: LibProgram) {
    this.#program = program
    this.#checker = program.checker
  }

  exports(module: string): void {
    for (const name of this.#program.exportsOf(module)) {
      if (isTypeOnly(name)) continue
      const symbol = this.#program.target(name)
      if ((symbol.flags & ts.SymbolFlags.Value) === 0) continue
      const type = this.#checker.getTypeOfSymbol(symbol)
      const at = `${module}.${symbol.name}`
      for (const signature of type.getCallSignatures()) this.#signature(at, signature)
      if ((symbol.flags & ts.SymbolFlags.Class) === 0) continue
      for (const signature of type.getConstructSignatures()) {
        if (isPublic(signature.declaration)) this.#parameters(at, signature)
      }
      this.#methods(at, type)
      this.#methods(at, this.#checker.getDeclaredTypeOfSymbol(symbol))
    }
  }

  #methods(at: string, type: ts.Type): void {
    for (const property of this.#checker.getPropertiesOfType(type)) {
      const [declaration] = property.declarations ?? []
      if (!isOurs(declaration) || !isPublic(declaration)) continue
      for (const signature of this.#checker.getTypeOfSymbol(property).getCallSignatures()) {
        this.#signature(`${at}.${property.name}`, signature)
      }
    }
  }

  #signature(at: string, signature: ts.Signature): void {
    this.#parameters(at, signature)
    const returned = this.#checker.getReturnTypeOfSignature(signature)
    const result = this.#checker.getAwaitedType(returned) ?? returned
    const isInterface = ((result.symbol?.flags ?? 0) & ts.SymbolFlags.Interface) !== 0
    if (!isInterface || this.#returned.has(result) || !isOurs(result.symbol.declarations?.[0])) {
      return
    }
    this.#returned.add(result)
    this.#methods(result.symbol.name, result)
  }

  #parameters(at: string, signature: ts.Signature): void {
    for (const [i, parameter] of signature.parameters.entries()) {
      const name = /^__\d+$/.test(parameter.name) ? String(i) : parameter.name
      this.#options(this.#checker.getTypeOfSymbol(parameter), `${at}#${name}`, '', [])
    }
  }

  #options(type: ts.Type, parameter: string, path: string, above: readonly ts.Type[]): void {
    if (above.includes(type) || above.length > 5) return
    const inside = [...above, type]
    if (type.isUnion()) {
      for (const one of type.types) this.#options(one, parameter, path, inside)
      return
    }
    const [element] = this.#checker.isArrayLikeType(type)
      ? this.#checker.getTypeArguments(type as ts.TypeReference)
      : []
    if (element !== undefined) return this.#options(element, parameter, `${path}[0]`, inside)
    const isClass = ((type.symbol?.flags ?? 0) & ts.SymbolFlags.Class) !== 0
    if ((type.flags & ts.TypeFlags.Object) === 0 && !type.isIntersection()) return
    if (isClass || type.getCallSignatures().length > 0) return
    const index = type.getStringIndexType()
    if (index !== undefined) this.#options(index, parameter, `${path}.any`, inside)
    const properties = this.#checker
      .getPropertiesOfType(type)
      .filter((property) => isOurs(property.declarations?.[0]) && /^\w+$/.test(property.name))
    if (properties.length === 0 || index !== undefined) return
    if (properties.some((property) => (property.flags & ts.SymbolFlags.Optional) !== 0)) {
      this.#add(type, parameter, path, properties)
    }
    for (const property of properties) {
      const below = path === '' ? property.name : `${path}.${property.name}`
      this.#options(this.#checker.getTypeOfSymbol(property), parameter, below, inside)
    }
  }

  #add(type: ts.Type, parameter: string, path: string, properties: readonly ts.Symbol[]): void {
    const isNumber = (property: ts.Symbol): boolean => {
      const value = this.#checker.getNonNullableType(this.#checker.getTypeOfSymbol(property))
      return (value.flags & ts.TypeFlags.NumberLike) !== 0
    }
    const symbol = type.aliasSymbol ?? type.symbol
    this.places.set(`${parameter} ${path} ${properties.length}`, {
      parameter,
      path,
      type: symbol === undefined || symbol.name === '__type' ? '' : symbol.name,
      names: properties.map(({ name }) => name),
      numbers: properties.filter(isNumber).map(({ name }) => name),
    })
  }
}

function isTypeOnly(symbol: ts.Symbol): boolean {
  return (symbol.declarations ?? []).some(
    (one) => ts.isExportSpecifier(one) && (one.isTypeOnly || one.parent.parent.isTypeOnly),
  )
}

/** Neither private nor protected, nor `@internal`. */
function isPublic(declaration: ts.Node | undefined): boolean {
  if (declaration === undefined) return true
  const named = declaration as ts.NamedDeclaration
  if (named.name !== undefined && ts.isPrivateIdentifier(named.name)) return false
  const flags = ts.getCombinedModifierFlags(declaration as ts.Declaration)
  if ((flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0) return false
  return !ts.getJSDocTags(declaration).some(({ tagName }) => tagName.text === 'internal')
}
