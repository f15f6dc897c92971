import { expressionEnd } from '../outline-javascript.js'
import { statementEnd } from '../outline-python.js'
import { nameFacts } from '../source.js'
import type { Token } from '../token.js'
import type { OperatorContext } from './patch.js'

/** The last token of the statement at `at`, without its semicolon. */
export function endOf({ file }: OperatorContext, at: number): number {
  return file.language === 'python' ? statementEnd(file.tokens, at) : expressionEnd(file.tokens, at)
}

/** Whether a label of a `switch` starts here; in Python, these words are names. */
export function isLabel({ kind, text }: Token): boolean {
  return kind === 'keyword' && (text === 'case' || text === 'default')
}

/** Whether a statement starts here. */
export function isStatement(context: OperatorContext, at: number): boolean {
  return nameFacts(context.file).statements.has(at)
}

/** Whether an expression starts here, and not a declaration, branch or label. */
export function isExpression({ file }: OperatorContext, at: number): boolean {
  const token = file.tokens[at]!
  if (token.kind === 'keyword')
    return [
      'this',
      'await',
      'new',
      'null',
      'true',
      'false',
      'not',
      'None',
      'True',
      'False',
    ].includes(token.text)
  return token.kind !== 'punctuator' || ['(', '[', '!', '-'].includes(token.text)
}
