/** Operators that plant in JavaScript what real fixes mend: over the syntax tree of TypeScript. */
import ts from 'typescript'
import type { Mutation } from './bug.js'

/** Methods and globals that are taken for one another. */
const FAMILIES: readonly (readonly string[])[] = [
  ['trimStart', 'trimEnd', 'trim'], ['floor', 'ceil', 'round', 'trunc'], ['push', 'unshift'],
  ['pop', 'shift'], ['indexOf', 'lastIndexOf'], ['some', 'every'], ['startsWith', 'endsWith'],
  ['min', 'max'], ['slice', 'substr', 'substring'], ['keys', 'values', 'entries'],
  ['toUpperCase', 'toLowerCase'], ['padStart', 'padEnd'], ['find', 'filter'], ['has', 'get'],
  ['replace', 'replaceAll'], ['charAt', 'charCodeAt'], ['parseInt', 'parseFloat'],
  ['apply', 'call'], ['map', 'forEach'], ['test', 'exec'],
]
const CLASSES: readonly (readonly [from: RegExp, to: string])[] = [
  [/\\d/, '\\w'], [/\\w/, '\\d'], [/\\s/, '\\S'], [/\[\^/, '['], [/\+(?![?\]])/, '*'],
  [/(?<![\\(])\*/, '+'], [/0-9/, '1-9'], [/a-z/, 'a-y'], [/^\^/, ''], [/(?<!\\)\$$/, ''],
  [/(?<!\\)\./, '\\.'],
]
const SLICES = new Set(['slice', 'substring', 'substr', 'splice', 'charAt', 'charCodeAt', 'at'])
const EXITS = new Set([
  ts.SyntaxKind.ReturnStatement, ts.SyntaxKind.ContinueStatement, ts.SyntaxKind.BreakStatement,
  ts.SyntaxKind.ThrowStatement,
])

type Plant = (operator: string, node: ts.Node, replacement: string) => void

/** Every mutation of a text, in the order of the text. */
export function ownMutations(path: string, text: string): Mutation[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS)
  const found: Mutation[] = []
  const plant: Plant = (operator, node, replacement) => {
    const offset = node.getStart()
    const original = node.getText()
    if (original !== replacement) found.push({ operator, offset, original, replacement })
  }
  const visit = (node: ts.Node): void => {
    statements(node, plant)
    calls(node, plant)
    conditions(node, plant)
    elements(node, plant)
    literals(node, plant)
    identifiers(node, plant)
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found.sort((a, b) => a.offset - b.offset)
}

function statements(node: ts.Node, plant: Plant): void {
  if (ts.isIfStatement(node) && node.elseStatement === undefined) {
    const inner = node.thenStatement
    const last = ts.isBlock(inner) ? inner.statements.at(-1) : inner
    if (last !== undefined && EXITS.has(last.kind)) plant('removed guard', node, ';')
  }
  if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) {
    plant('removed call', node, ';')
  }
  if (ts.isReturnStatement(node) && node.expression !== undefined) {
    plant('removed return', node, `${node.expression.getText()};`)
  }
  if (ts.isAwaitExpression(node)) plant('missing await', node, node.expression.getText())
  if (!ts.isForStatement(node)) return
  const { condition, initializer } = node
  if (condition !== undefined && ts.isBinaryExpression(condition)) {
    const sign = condition.operatorToken
    const other = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }[sign.getText()]
    if (other !== undefined) plant('off by one in a loop', sign, other)
  }
  if (initializer === undefined || !ts.isVariableDeclarationList(initializer)) return
  const start = initializer.declarations[0]?.initializer
  if (start !== undefined && ts.isNumericLiteral(start)) {
    plant('off by one in a loop', start, String(Number(start.text) + 1))
  }
}

function calls(node: ts.Node, plant: Plant): void {
  if (!ts.isCallExpression(node)) return
  const { expression: callee, arguments: args } = node
  const name = ts.isPropertyAccessExpression(callee) ? callee.name : callee
  for (const family of FAMILIES.filter((names) => names.includes(name.getText()))) {
    for (const other of family) plant('other method of the family', name, other)
  }
  if (SLICES.has(name.getText())) {
    for (const one of args) {
      const text = one.getText()
      const next = ts.isNumericLiteral(one) ? String(Number(text) + 1) : `${text} + 1`
      plant('off by one in a slice', one, next)
      if (/ - 1$/.test(text)) plant('off by one in a slice', one, text.slice(0, -4))
    }
  }
  args.forEach((one, index) => {
    const next = args[index + 1]
    if (next === undefined || ts.isFunctionLike(one) || ts.isFunctionLike(next)) return
    const swapped = args.map((each) => each.getText())
    swapped.splice(index, 2, next.getText(), one.getText())
    if (one.getText() !== next.getText()) {
      plant('swapped arguments', node, `${callee.getText()}(${swapped.join(', ')})`)
    }
  })
}

function conditions(node: ts.Node, plant: Plant): void {
  if (!ts.isBinaryExpression(node)) return
  const sign = node.operatorToken.getText()
  if (sign === '&&') {
    plant('dropped conjunct', node, node.left.getText())
    plant('dropped conjunct', node, node.right.getText())
  }
  if (sign !== '||' && sign !== '??') return
  plant('dropped alternative or default', node, node.left.getText())
  if (sign === '||') plant('dropped alternative or default', node, node.right.getText())
}

function elements(node: ts.Node, plant: Plant): void {
  if (ts.isParameter(node) && node.initializer !== undefined) {
    plant('missing default', node, node.name.getText())
  }
  const parts = ts.isArrayLiteralExpression(node)
    ? node.elements : ts.isObjectLiteralExpression(node) ? node.properties : undefined
  if (parts === undefined || parts.length < 2) return
  const [open, close] = ts.isArrayLiteralExpression(node) ? ['[', ']'] : ['{ ', ' }']
  for (const [index] of parts.slice(0, 40).entries()) {
    const rest = parts.filter((_, at) => at !== index).map((part) => part.getText())
    plant('missing element', node, `${open}${rest.join(', ')}${close}`)
  }
}

function literals(node: ts.Node, plant: Plant): void {
  if (ts.isNumericLiteral(node)) {
    plant('other number', node, String(Number(node.text) + 1))
    if (Number(node.text) > 1) plant('other number', node, String(Number(node.text) - 1))
  }
  if (ts.isStringLiteral(node) && node.text.length > 1 && isMutableText(node)) {
    plant('other text', node, node.getText().slice(0, -2) + node.getText().at(-1)!)
  }
  if (!ts.isRegularExpressionLiteral(node)) return
  const [, body = '', flags = ''] = /^\/([^]*)\/(\w*)$/.exec(node.text) ?? []
  for (const [from, to] of CLASSES) {
    const other = `/${body.replace(from, () => to)}/${flags}`
    if (from.test(body)) plant('other expression', node, other)
  }
  for (const flag of flags) plant('other expression', node, `/${body}/${flags.replace(flag, '')}`)
}

/** Not a directive, a module or the escape of a character. */
const isMutableText = (node: ts.StringLiteral): boolean =>
  !ts.isExpressionStatement(node.parent) && !node.getText().includes('\\') &&
  !(ts.isCallExpression(node.parent) && node.parent.expression.getText() === 'require') &&
  !ts.isImportDeclaration(node.parent) && !ts.isExportDeclaration(node.parent)

/** A name is replaced by those declared right before and after it in the same function. */
function identifiers(node: ts.Node, plant: Plant): void {
  if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) return
  const names: string[] = []
  const uses: ts.Identifier[] = []
  const collect = (inner: ts.Node): void => {
    const declares = (ts.isParameter(inner) || ts.isVariableDeclaration(inner)) &&
      ts.isIdentifier(inner.name)
    if (declares) names.push(inner.name.getText())
    if (ts.isIdentifier(inner) && isUse(inner)) uses.push(inner)
    if (!ts.isFunctionLike(inner) || inner === node) ts.forEachChild(inner, collect)
  }
  collect(node)
  for (const use of uses) {
    const at = names.indexOf(use.text)
    if (at < 0) continue
    for (const other of new Set([names[at - 1], names[at + 1]])) {
      if (other !== undefined && other !== use.text) plant('wrong name', use, other)
    }
  }
}

function isUse(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent) && parent.name === node) return false
  const declares = ts.isParameter(parent) || ts.isVariableDeclaration(parent) ||
    ts.isFunctionLike(parent) || ts.isPropertyAssignment(parent)
  return !ts.isShorthandPropertyAssignment(parent) && !(declares && parent.name === node)
}
