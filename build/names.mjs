/**
 * Which names are shortened. Local ones are, by the bundler. At the top level classes and public
 * functions keep theirs, which stack traces and the console show; the others get short ones here.
 *
 * The bundler gives each name of the top level to one thing: no inner scope reuses it. Columns stay
 * as they are, so that source maps still fit: a shorter name is followed by spaces. What one file
 * imports from another has one short name in both, so that the lists of imports need no `as`.
 */
import ts from 'typescript'

/**
 * Names that a direct `eval` could see are left alone by the bundler, private ones of its class
 * among them, which get short ones here. Afterwards `thin()` of `source-map.mjs` removes the marks.
 *
 * @param {string} code A module as the bundler makes it, with its spaces.
 * @param {{ published: ReadonlySet<string>, shared: ReadonlySet<string> }} known
 */
export function prepareNames(code, known) {
  return `${shortenOthers(markClasses(code), known)}\neval("")`
}

/** @param {string} code @returns {string[]} What a module exports. */
export function exportedNames(code) {
  const [, list = ''] = /^export \{([^}]*)\};$/m.exec(code) ?? []
  return list.split(',').map((name) => name.trim().replace(/^.* as /, ''))
}

/** Of a class. */
const MARK = 'static{eval("")}'
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$'
const LETTERS = DIGITS.slice(10).replace('_', '')
const KEYWORDS = new Set(['as', 'do', 'if', 'in', 'is', 'of'])

/**
 * Names that the code has nowhere, in no inner scope either, the shortest first.
 *
 * @param {string} code
 */
function* shortNames(code) {
  const taken = new Set(code.match(/[\w$]+/g))
  for (const start of ['', '$', '$$']) {
    for (const letter of LETTERS) {
      for (const digit of DIGITS) {
        const name = `${start}${letter}${digit}`
        if (!taken.has(name) && !KEYWORDS.has(name)) yield name
      }
    }
  }
  throw new Error('the code has too many names')
}

/**
 * Gives what modules share short names, in their lists of exports and imports.
 *
 * @param {Map<string, string>} codes By file names, those of one folder.
 * @param {ReadonlySet<string>} entries
 * @returns {Set<string>} These names.
 */
export function shortenShared(codes, entries) {
  const all = [...codes.values()].join('\n')
  const free = shortNames(all)
  const shared = [...codes.keys()].filter(
    (file) => !entries.has(file) && !all.includes(`import("./${file}")`),
  )
  const given = shared.flatMap((file) => {
    const names = exportedNames(codes.get(file) ?? '')
    const short = new Map(names.map((name) => [name, free.next().value ?? name]))
    const from = new RegExp(`^import \\{([^}]*)\\} from "\\.{1,2}/${file}";$`, 'gm')
    const change = (/** @type {0 | 1} */ side) => (/** @type {string} */ text, list = '') =>
      text.replace(list, () => renamed(list, side, short))
    for (const [other, code] of codes) codes.set(other, code.replace(from, change(0)))
    const code = codes.get(file) ?? ''
    codes.set(file, code.replace(/^export \{([^}]*)\};$/m, change(1)))
    return [...short.values()]
  })
  return new Set(given)
}

/**
 * @param {string} list What stands between braces.
 * @param {0 | 1} side Which of the two names of `a as b`.
 * @param {Map<string, string>} short
 */
function renamed(list, side, short) {
  return list.replaceAll(/([\w$]+)(?: as ([\w$]+))?/g, (_, first, second = first) => {
    const names = [first, second]
    names[side] = short.get(names[side]) ?? names[side]
    return names.join(' as ')
  })
}

/**
 * The bundler makes `Name = class _Name` of a class that mentions itself. The underscore would show
 * in stack traces and wherever an object is printed, and goes with the marks.
 *
 * @param {string} code
 */
function markClasses(code) {
  return code.replaceAll(/\b(\w+) = class _\1\b[^\n]*\{$/gm, `$& ${MARK}`)
}

/** What `prepareNames()` added, in the short code. @param {string} code */
export function marksIn(code) {
  const names = [...code.matchAll(/\b(\w+)=class _+\1\b/g)].map(([, name]) => name)
  const underscore = names.length === 0 ? '' : `|\\b_+(?=(?:${names.join('|')})\\b)`
  return new RegExp(`static\\{eval\\(""\\)\\}|;?eval\\(""\\);?$${underscore}`, 'g')
}

/**
 * @param {string} code
 * @param {{ published: ReadonlySet<string>, shared: ReadonlySet<string> }} known
 */
function shortenOthers(code, { published, shared }) {
  const file = ts.createSourceFile('bundle.js', code, ts.ScriptTarget.Latest, true)
  const names = new Set(file.statements.flatMap((one) => declared(one, published)))
  /** @type {Map<string, ts.Identifier[]>} */
  const uses = new Map()
  const visit = (/** @type {ts.Node} */ node) => {
    if (ts.isIdentifier(node) && names.has(node.text) && !isMember(node)) {
      // It would take a longer text, which moves what follows on its line.
      if (ts.isShorthandPropertyAssignment(node.parent)) names.delete(node.text)
      uses.set(node.text, uses.get(node.text) ?? [])
      uses.get(node.text)?.push(node)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  const free = shortNames(code)
  const often = [...uses]
    .filter(([name]) => names.has(name))
    .sort(([, a], [, b]) => b.length - a.length)
  const edits = often.flatMap(([name, nodes]) => {
    const elsewhere = nodes.map(({ parent }) => nameElsewhere(parent)).find((it) => shared.has(it))
    const short = elsewhere ?? free.next().value ?? name
    if (short.length > name.length || short === name) return []
    return nodes.map((node) => edit(node, short))
  })
  return applied(code, [...edits, ...markedClasses(file).flatMap(shortenPrivate)])
}

/** The outermost classes with a mark in them. @param {ts.Node} node @returns {ts.Node[]} */
function markedClasses(node) {
  if (ts.isClassLike(node) && node.getText().includes(MARK)) return [node]
  /** @type {ts.Node[]} */
  const found = []
  ts.forEachChild(node, (inner) => void found.push(...markedClasses(inner)))
  return found
}

/**
 * Equal names get equal ones, so that an inner class hides what it has hidden.
 *
 * @param {ts.Node} marked
 */
function shortenPrivate(marked) {
  /** @type {Map<string, ts.Node[]>} */
  const uses = new Map()
  const visit = (/** @type {ts.Node} */ node) => {
    if (ts.isPrivateIdentifier(node)) uses.set(node.text, [...(uses.get(node.text) ?? []), node])
    ts.forEachChild(node, visit)
  }
  visit(marked)
  const often = [...uses].sort(([, a], [, b]) => b.length - a.length)
  return often.flatMap(([name, nodes], index) => {
    const short = `#${LETTERS[index] ?? `${LETTERS[index % LETTERS.length]}${index}`}`
    const text = short.padEnd(name.length)
    return nodes.map((node) => ({ start: node.getStart(), end: node.getEnd(), text }))
  })
}

/** What other files call what `node` imports or exports. @param {ts.Node} node */
function nameElsewhere(node) {
  if (ts.isImportSpecifier(node)) return node.propertyName?.text ?? ''
  return ts.isExportSpecifier(node) ? node.name.text : ''
}

/**
 * The names that a statement declares and that nobody needs to see.
 *
 * @param {ts.Statement} statement
 * @param {ReadonlySet<string>} published
 */
function declared(statement, published) {
  if (ts.isFunctionDeclaration(statement)) {
    const name = statement.name?.text
    return name === undefined || published.has(name) ? [] : [name]
  }
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name, initializer }) =>
      !ts.isIdentifier(name) ||
      (initializer !== undefined && ts.isClassExpression(initializer)) ||
      published.has(name.text)
        ? []
        : [name.text],
    )
  }
  if (!ts.isImportDeclaration(statement)) return []
  const { name, namedBindings } = statement.importClause ?? {}
  const named =
    namedBindings === undefined
      ? []
      : ts.isNamedImports(namedBindings)
        ? namedBindings.elements.map((element) => element.name)
        : [namedBindings.name]
  return [...(name === undefined ? [] : [name]), ...named].map(({ text }) => text)
}

/** Whether an identifier names a member, not a variable. @param {ts.Identifier} node */
function isMember(node) {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node
  if (ts.isImportSpecifier(parent) || ts.isBindingElement(parent))
    return parent.propertyName === node
  if (ts.isExportSpecifier(parent)) return parent.propertyName !== undefined && parent.name === node
  if (ts.isPropertyAssignment(parent) || ts.isClassElement(parent)) return parent.name === node
  if (ts.isMethodDeclaration(parent) || ts.isAccessor(parent)) return parent.name === node
  return ts.isLabeledStatement(parent) || ts.isBreakOrContinueStatement(parent)
}

/** @typedef {{ start: number, end: number, text: string }} Edit */

/** @param {ts.Identifier} node @param {string} short @returns {Edit} */
function edit(node, short) {
  const { parent, text } = node
  const at = { start: node.getStart(), end: node.getEnd() }
  // No position on these lines is ever asked for.
  if (nameElsewhere(parent) === short)
    return { start: parent.getStart(), end: parent.getEnd(), text: short }
  if (ts.isImportSpecifier(parent) && parent.propertyName === undefined)
    return { ...at, text: `${text} as ${short}` }
  if (ts.isExportSpecifier(parent) && parent.propertyName === undefined)
    return { ...at, text: `${short} as ${text}` }
  return { ...at, text: short.padEnd(text.length) }
}

/** @param {string} code @param {Edit[]} edits */
function applied(code, edits) {
  let end = 0
  const parts = edits
    .sort((a, b) => a.start - b.start)
    .map(({ start, end: after, text }) => {
      const part = code.slice(end, start) + text
      end = after
      return part
    })
  return parts.join('') + code.slice(end)
}
