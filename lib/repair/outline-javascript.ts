import type { Declaration, Outline, Region } from './outline.js'
import type { Token } from './token.js'

const CLOSING: ReadonlySet<string> = new Set([')', ']', '}'])
const STATEMENT_WORDS: ReadonlySet<string> = new Set(
  (
    'const let var function class return if for while do switch throw try import export break ' +
    'continue async'
  ).split(' '),
)

/** Whether a line break before `next` ends the statement (automatic semicolon insertion). */
function lineEnds(previous: Token | undefined, next: Token): boolean {
  if (!next.first || previous === undefined) return false
  const ended =
    ['name', 'number', 'string', 'regex'].includes(previous.kind) ||
    (previous.kind === 'template' && previous.text.endsWith('`')) ||
    (previous.kind === 'keyword' &&
      [
        'this',
        'true',
        'false',
        'null',
        'undefined',
        'return',
        'break',
        'continue',
        'super',
      ].includes(previous.text)) ||
    CLOSING.has(previous.text) ||
    previous.text === '++' ||
    previous.text === '--'
  if (!ended) return false
  if (next.kind === 'keyword') return !['in', 'instanceof'].includes(next.text)
  return next.kind !== 'punctuator' && next.kind !== 'template'
    ? true
    : ['{', '++', '--', '!', '}'].includes(next.text)
}

/** The last token of the expression that starts at `from`. */
export function expressionEnd(tokens: readonly Token[], from: number): number {
  let at = from
  for (; at < tokens.length; at++) {
    const token = tokens[at]!
    if (at > from && lineEnds(tokens[at - 1], token)) break
    if (token.kind !== 'punctuator') continue
    if (token.text === ',' || token.text === ';' || CLOSING.has(token.text)) break
    if (token.match > at) at = token.match
  }
  return Math.max(from, Math.min(at, tokens.length) - 1)
}

/** The first token after the type annotation whose colon is at `colon`. */
function skipType(tokens: readonly Token[], colon: number): number {
  let at = colon + 1
  let angle = 0
  while (at < tokens.length) {
    const token = tokens[at]!
    const previous = tokens[at - 1]!.text
    if (token.text === '<') angle++
    else if (token.text === '>' || token.text === '>>') angle -= token.text.length
    else if (token.text === '=>' && previous === ')') {
      // In a function type, the return type follows; otherwise the arrow ends the annotation.
      if (tokens[at + 1]?.text === '{') return at
    } else if (token.text === '=>') return at
    else if (token.text === '{' || token.text === '[' || token.text === '(') {
      if (token.text === '{' && angle === 0 && ![':', '|', '&', '=>', '<', ','].includes(previous))
        return at
      if (token.match < 0) return at
      at = token.match
    } else if ([';', '=', ')', ']', '}'].includes(token.text)) return at
    else if (token.text === ',' && angle === 0) return at
    at++
  }
  return at
}

function parameterNames(tokens: readonly Token[], open: number): { name: string; token: number }[] {
  const found: { name: string; token: number }[] = []
  const close = tokens[open]!.match
  let inDefault = false
  for (let at = open + 1; at < close; at++) {
    const { kind, text, match } = tokens[at]!
    const next = tokens[at + 1]!.text
    if (text === ',') inDefault = false
    else if (text === '=') inDefault = true
    else if (inDefault) {
      if (match > at) at = match
    } else if (text === ':' && tokens[at - 1]!.kind === 'name' && !insideBrace(tokens, at, open)) {
      at = skipType(tokens, at) - 1
    } else if (text === ':' && tokens[at - 1]!.text === '}') at = skipType(tokens, at) - 1
    else if (kind === 'name' && next !== ':') found.push({ name: text, token: at })
    else if (kind === 'name' && !insideBrace(tokens, at, open))
      found.push({ name: text, token: at })
  }
  return found
}

function insideBrace(tokens: readonly Token[], at: number, open: number): boolean {
  for (let i = at; i > open; i--) {
    const { text, match } = tokens[i]!
    if (text === '{' && match > at) return true
  }
  return false
}

/** Finds functions, classes, declared names and statements in JavaScript or TypeScript. */
export function outlineJavaScript(tokens: readonly Token[]): Outline {
  const regions: Region[] = []
  const named: { name: string; token: number; kind: Declaration['kind'] }[] = []
  const parameters: { name: string; token: number; regionFirst: number }[] = []
  const classes: { name: string; first: number; last: number }[] = []
  const blocks = new Set<number>()

  const addFunction = (name: string, first: number, params: number, body: number): void => {
    const names =
      params < 0
        ? []
        : tokens[params]!.text === '('
          ? parameterNames(tokens, params)
          : [{ name: tokens[params]!.text, token: params }]
    const braces = tokens[body]!.text === '{' && tokens[body]!.match > body
    if (braces) blocks.add(body)
    const last = braces ? tokens[body]!.match : expressionEnd(tokens, body)
    const isAsync = [first, first - 1, first - 2].some((i) => tokens[i]?.text === 'async')
    regions.push({
      name,
      owner: '',
      kind: 'function',
      first,
      last,
      bodyFirst: braces ? body + 1 : body,
      bodyLast: braces ? last - 1 : last,
      params: names.map((param) => param.name),
      isAsync,
    })
    for (const param of names) parameters.push({ ...param, regionFirst: first })
  }

  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!
    if (token.text === 'function' && token.kind === 'keyword') {
      const star = tokens[at + 1]?.text === '*' ? 1 : 0
      const name = tokens[at + 1 + star]?.kind === 'name' ? tokens[at + 1 + star]!.text : ''
      let open = at + 1 + star + (name === '' ? 0 : 1)
      while (open < tokens.length && tokens[open]!.text !== '(') open++
      const body = bodyAfter(tokens, open)
      if (body < 0) continue
      addFunction(name || nameBefore(tokens, at), at, open, body)
      if (name !== '') named.push({ name, token: at + 1 + star, kind: 'function' })
    } else if (token.text === 'class' && token.kind === 'keyword') {
      const name = tokens[at + 1]?.kind === 'name' ? tokens[at + 1]!.text : ''
      let open = at + 1
      while (open < tokens.length && tokens[open]!.text !== '{') open++
      if (open >= tokens.length || tokens[open]!.match < 0) continue
      blocks.add(open)
      classes.push({ name, first: open, last: tokens[open]!.match })
      if (name !== '') named.push({ name, token: at + 1, kind: 'class' })
    } else if (token.text === '=>') {
      const { params, first } = arrowParameters(tokens, at)
      if (first < 0 || at + 1 >= tokens.length) continue
      addFunction(nameBefore(tokens, first), first, params, at + 1)
    } else if (
      token.kind === 'name' &&
      tokens[at + 1]?.text === '(' &&
      tokens[at - 1]?.text !== 'function' &&
      tokens[at - 1]?.text !== '*' &&
      tokens[at - 1]?.text !== '.'
    ) {
      const body = bodyAfter(tokens, at + 1)
      if (body >= 0) addFunction(token.text, at, at + 1, body)
    } else if (token.kind === 'keyword' && ['const', 'let', 'var'].includes(token.text)) {
      declared(tokens, at, named)
    } else if (
      token.text === 'catch' &&
      tokens[at + 1]?.text === '(' &&
      tokens[at + 2]?.kind === 'name'
    ) {
      named.push({ name: tokens[at + 2]!.text, token: at + 2, kind: 'variable' })
    } else if (token.text === 'import' && token.kind === 'keyword') {
      imported(tokens, at, named)
    }
  }
  valueRegions(tokens, regions)
  regions.sort((a, b) => a.first - b.first || b.last - a.last)
  const owned = regions.map((region) => {
    const owner = classes
      .filter(({ first, last }) => first < region.first && region.last < last)
      .at(-1)
    return owner === undefined ? region : { ...region, owner: owner.name }
  })
  return {
    regions: owned,
    declarations: placeDeclarations(owned, named, parameters),
    statements: statementStarts(tokens, blocks),
  }
}

function placeDeclarations(
  regions: readonly Region[],
  named: readonly { name: string; token: number; kind: Declaration['kind'] }[],
  parameters: readonly { name: string; token: number; regionFirst: number }[],
): Declaration[] {
  const around = (token: number, own: boolean): number => {
    let found = -1
    regions.forEach(({ kind, first, last, bodyFirst }, index) => {
      if (kind === 'function' && (own ? first : bodyFirst) <= token && token <= last) found = index
    })
    return found
  }
  return [
    ...parameters.map(({ name, token, regionFirst }): Declaration => ({
      name,
      token,
      kind: 'parameter',
      region: regions.findIndex(
        (region) => region.kind === 'function' && region.first === regionFirst,
      ),
    })),
    ...named.map(({ name, token, kind }): Declaration => ({
      name,
      token,
      kind,
      region: around(token, false),
    })),
  ].sort((a, b) => a.token - b.token)
}

/** The body's first token after the parameter list at `open`; -1 when no body follows. */
function bodyAfter(tokens: readonly Token[], open: number): number {
  const close = tokens[open]?.match ?? -1
  if (close < open) return -1
  let at = close + 1
  if (tokens[at]?.text === ':') at = skipType(tokens, at)
  return tokens[at]?.text === '{' && tokens[at]!.match > at ? at : -1
}

function arrowParameters(
  tokens: readonly Token[],
  arrow: number,
): { params: number; first: number } {
  const before = tokens[arrow - 1]
  if (before === undefined) return { params: -1, first: -1 }
  if (before.text === ')' && before.match >= 0) {
    // `(a): (b) => c => …` is ambiguous: the nearest list is used.
    return { params: before.match, first: before.match }
  }
  if (
    before.kind === 'name' &&
    tokens[arrow - 2]?.text !== ':' &&
    tokens[arrow - 2]?.text !== '.' &&
    tokens[arrow - 2]?.text !== '|'
  ) {
    return { params: arrow - 1, first: arrow - 1 }
  }
  for (let at = arrow - 1; at > Math.max(0, arrow - 40); at--) {
    const token = tokens[at]!
    if (token.text === ';') break
    if (token.text === ':' && tokens[at - 1]!.text === ')' && tokens[at - 1]!.match >= 0) {
      return { params: tokens[at - 1]!.match, first: tokens[at - 1]!.match }
    }
    if (token.match >= 0 && token.match < at) at = token.match
  }
  return { params: -1, first: -1 }
}

/** The name of the variable, property or field to which a function expression is assigned. */
function nameBefore(tokens: readonly Token[], first: number): string {
  let at = first - 1
  if (tokens[at]?.text === 'async') at--
  const sign = tokens[at]?.text
  if (sign !== '=' && sign !== ':') return ''
  const before = tokens[at - 1]
  return before?.kind === 'name' ? before.text : ''
}

function declared(
  tokens: readonly Token[],
  keyword: number,
  out: { name: string; token: number; kind: Declaration['kind'] }[],
): void {
  let at = keyword + 1
  for (;;) {
    const token = tokens[at]
    if (token === undefined) return
    if (token.text === '{' || token.text === '[') {
      for (let i = at + 1; i < token.match; i++) {
        const { kind, text } = tokens[i]!
        if (kind === 'name' && tokens[i + 1]!.text !== ':' && tokens[i - 1]!.text !== '=') {
          out.push({ name: text, token: i, kind: 'variable' })
        }
      }
      at = Math.max(token.match, at) + 1
    } else if (token.kind === 'name') {
      out.push({ name: token.text, token: at, kind: 'variable' })
      at++
    } else return
    if (tokens[at]?.text === ':') at = skipType(tokens, at)
    if (tokens[at]?.text === '=') at = expressionEnd(tokens, at + 1) + 1
    if (tokens[at]?.text !== ',') return
    at++
  }
}

function imported(
  tokens: readonly Token[],
  keyword: number,
  out: { name: string; token: number; kind: Declaration['kind'] }[],
): void {
  for (let at = keyword + 1; at < tokens.length; at++) {
    const { kind, text } = tokens[at]!
    if (kind === 'string' || text === '(' || text === ';' || text === '.') return
    if (text === 'from' && tokens[at + 1]?.kind === 'string') return
    if (kind === 'name' && text !== 'as' && text !== 'type' && tokens[at + 1]?.text !== 'as') {
      out.push({ name: text, token: at, kind: 'import' })
    }
  }
}

/** Adds regions for top-level `const x = …` and for class fields, unless they hold a function. */
function valueRegions(tokens: readonly Token[], regions: Region[]): void {
  const taken = new Set(regions.map(({ first }) => first))
  let depth = 0
  tokens.forEach((token, at) => {
    if (token.kind === 'punctuator' && token.match >= 0) depth += token.match > at ? 1 : -1
    if (token.text !== '=' || depth > 1) return
    const name = tokens[at - 1]
    if (name?.kind !== 'name' || tokens[at - 2]?.text === '.') return
    const isVariable = ['const', 'let', 'var'].includes(tokens[at - 2]?.text ?? '')
    if (depth === 0 ? !isVariable : !name.first) return
    const body = at + 1
    if (body >= tokens.length || taken.has(body) || taken.has(body + 1)) return
    const last = expressionEnd(tokens, body)
    regions.push({
      name: name.text,
      owner: '',
      kind: 'value',
      first: at - 1,
      last,
      bodyFirst: body,
      bodyLast: last,
      params: [],
      isAsync: false,
    })
  })
}

function statementStarts(tokens: readonly Token[], functionBodies: ReadonlySet<number>): number[] {
  const starts: number[] = []
  /** Whether each open bracket is a block of statements. */
  const open: boolean[] = []
  let headerEnd = -1
  tokens.forEach((token, at) => {
    const previous = tokens[at - 1]
    const inBlock = open.at(-1) ?? true
    if (
      token.text === '(' &&
      previous?.kind === 'keyword' &&
      ['if', 'for', 'while', 'with'].includes(previous.text)
    ) {
      headerEnd = token.match
    }
    const begins =
      previous === undefined ||
      previous.text === ';' ||
      at - 1 === headerEnd ||
      (previous.text === '{' && inBlock) ||
      previous.text === 'else' ||
      previous.text === 'do' ||
      (previous.text === '}' && previous.match >= 0 && token.first) ||
      (previous.text === ':' && token.first) ||
      lineEnds(previous, token) ||
      (STATEMENT_WORDS.has(token.text) && token.first)
    if (begins && inBlock && token.text !== '}' && token.text !== ')' && token.text !== '{')
      starts.push(at)
    if (token.kind !== 'punctuator' || token.match < 0) return
    if (token.match < at) open.pop()
    else if (token.text !== '{') open.push(false)
    else {
      const before = previous?.text ?? ';'
      open.push(
        functionBodies.has(at) ||
          ([')', ';', '{', '}', 'else', 'try', 'finally', 'do', ':'].includes(before) &&
            before !== ':'),
      )
    }
  })
  return starts
}
