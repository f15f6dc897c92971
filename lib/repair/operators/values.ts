import type { Operator } from './patch.js'

const FLIPS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries<readonly string[]>({
    true: ['false'],
    false: ['true'],
    True: ['False'],
    False: ['True'],
  }),
)

export const boolean: Operator = (context, at) => {
  const token = context.file.tokens[at]!
  if (token.kind !== 'keyword') return
  for (const other of FLIPS.get(token.text) ?? []) context.replace(at, at, other, 'boolean', 0.8)
}

/** Replaces an empty value by another one. */
export const empty: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  const python = file.language === 'python'
  if (token.kind === 'keyword' && (token.text === 'null' || token.text === 'undefined')) {
    for (const other of ['null', 'undefined', '0', "''", '[]', 'false', 'true']) {
      if (other !== token.text) context.replace(at, at, other, 'null', other.length > 4 ? 0.4 : 0.2)
    }
  } else if (token.text === 'None' && python) {
    for (const other of ['0', "''", '[]', '{}', 'False', 'True'])
      context.replace(at, at, other, 'null', 0.2)
  } else if (
    token.text === '[' &&
    token.match === at + 1 &&
    !/[\w)\]]/.test(file.text[token.start - 1] ?? '')
  ) {
    for (const other of ['{}', python ? 'None' : 'null', '0', "''"])
      context.replace(at, at + 1, other, 'null', 0.12)
  } else if (token.text === '{' && token.match === at + 1 && file.tokens[at - 1]?.text === '=') {
    for (const other of ['[]', python ? 'None' : 'null'])
      context.replace(at, at + 1, other, 'null', 0.12)
  }
}
