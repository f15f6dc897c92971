/**
 * The programs that the reports on tests hand to other processes, which are texts in the sources.
 * All are taken out of them and packed together, in a module that the others import: on their own
 * they would take four times as much of the package.
 *
 * They lose comments and indentation, as the package itself does. Where one was, its newlines
 * stay, so that source maps still fit.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/** The module of the texts, an array `PROGRAMS`. */
export const PROGRAMS_MODULE = 'packed:programs'

/** Characters of the shortest that is worth it. */
const MIN_LENGTH = 200

/**
 * @typedef {object} Taken
 * @property {(string | string[])[]} programs The texts; in parts, what values stand between.
 * @property {ReadonlyMap<string, string>} modules What is left of the sources, by their paths.
 */

/** @param {string} folder Of sources. @returns {Taken} */
export function takePrograms(folder) {
  /** @type {(string | string[])[]} */
  const programs = []
  const modules = new Map()
  for (const name of readdirSync(folder).sort()) {
    const code = withoutComments(readFileSync(join(folder, name), 'utf8'))
    const count = programs.length
    const rest = takeFrom(code, programs)
    const isSame = programs.length === count
    const path = join(folder, name)
    modules.set(path, isSame ? code : `import { PROGRAMS } from '${PROGRAMS_MODULE}';${rest}`)
  }
  return { programs, modules }
}

/**
 * @param {string} code
 * @param {(string | string[])[]} programs Those of the code are added.
 */
function takeFrom(code, programs) {
  const file = ts.createSourceFile('source.ts', code, ts.ScriptTarget.Latest, true)
  let rest = ''
  let end = 0
  const visit = (/** @type {ts.Node} */ node) => {
    if (!ts.isTaggedTemplateExpression(node) || node.tag.getText() !== 'String.raw') {
      return ts.forEachChild(node, visit)
    }
    const text = node.getText()
    if (text.length < MIN_LENGTH) return
    const newlines = '\n'.repeat(text.split('\n').length - 1)
    rest += code.slice(end, node.getStart()) + taken(node.template, programs) + newlines
    end = node.getEnd()
  }
  visit(file)
  return rest + code.slice(end)
}

/**
 * @param {ts.TemplateLiteral} template
 * @param {(string | string[])[]} programs
 */
function taken(template, programs) {
  const place = `PROGRAMS[${programs.length}]`
  if (ts.isNoSubstitutionTemplateLiteral(template)) {
    programs.push(template.getText().slice(1, -1))
    return place
  }
  const { head, templateSpans } = template
  const rest = templateSpans.map(({ literal }) => literal.getText().replace(/^\}|\$\{$|`$/g, ''))
  programs.push([head.getText().slice(1, -2), ...rest])
  const values = templateSpans.map(({ expression }) => expression.getText())
  return `String.raw({ raw: ${place} }, ${values.join(', ')})`
}

/** Lines stay. @param {string} code */
function withoutComments(code) {
  const javascript = /String\.raw`\n(?:'use strict'|import )[^`]*`/g
  const python = /`\n(?:import |class |def )[^`]*\bdef [^`]*`/g
  return code
    .replaceAll(python, (text) =>
      text.replaceAll(/^(?: {4})+/gm, (spaces) => ' '.repeat(spaces.length / 4)),
    )
    .replaceAll(javascript, (text) =>
      // Python, whose blocks are told by indentation.
      /^import [\w., ]+$/m.test(text)
        ? text
        : text
            .replaceAll(/^ *\/\*\*(?:(?!\*\/)[^])*\*\/$/gm, (all) => all.replaceAll(/.+/g, ''))
            .replaceAll(/^ *\/\/.*$/gm, '')
            .replaceAll(/^ +/gm, ''),
    )
}
