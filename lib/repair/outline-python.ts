import type { Declaration, Outline, Region } from './outline.js'
import type { Token } from './token.js'

/** Finds functions, classes, declared names and statements in Python. */
export function outlinePython(tokens: readonly Token[]): Outline {
  const regions: Region[] = []
  const classes: { name: string; first: number; last: number }[] = []
  const named: { name: string; token: number; kind: Declaration['kind'] }[] = []
  const parameters: { name: string; token: number; regionFirst: number }[] = []

  tokens.forEach((token, at) => {
    const next = tokens[at + 1]
    if (token.text === 'def' && token.kind === 'keyword' && next?.kind === 'name') {
      const open = at + 2
      const close = tokens[open]?.match ?? -1
      if (close < 0) return
      let colon = close + 1
      while (colon < tokens.length && tokens[colon]!.text !== ':') colon++
      const last = blockEnd(tokens, at)
      const names = parameterNames(tokens, open, close)
      regions.push({
        name: next.text,
        owner: '',
        kind: 'function',
        first: at,
        last,
        bodyFirst: colon + 1,
        bodyLast: last,
        params: names.map(({ name }) => name),
        isAsync: tokens[at - 1]?.text === 'async',
      })
      for (const param of names) parameters.push({ ...param, regionFirst: at })
      named.push({ name: next.text, token: at + 1, kind: 'function' })
    } else if (token.text === 'class' && token.first && next?.kind === 'name') {
      classes.push({ name: next.text, first: at, last: blockEnd(tokens, at) })
      named.push({ name: next.text, token: at + 1, kind: 'class' })
    } else if (token.text === 'import' && token.kind === 'keyword') {
      for (let i = at + 1; i < tokens.length && !tokens[i]!.first; i++) {
        if (tokens[i]!.kind !== 'name' || ['as', '.'].includes(tokens[i + 1]?.text ?? '')) continue
        named.push({ name: tokens[i]!.text, token: i, kind: 'import' })
      }
    } else if (token.kind === 'name' && assigned(tokens, at)) {
      named.push({ name: token.text, token: at, kind: 'variable' })
      if (
        !token.first ||
        next?.text !== '=' ||
        (token.indent > 0 && !inClassBody(classes, regions, at))
      )
        return
      const last = statementEnd(tokens, at)
      regions.push({
        name: token.text,
        owner: '',
        kind: 'value',
        first: at,
        last,
        bodyFirst: at + 2,
        bodyLast: last,
        params: [],
        isAsync: false,
      })
    }
  })
  regions.sort((a, b) => a.first - b.first || b.last - a.last)
  const owned = regions.map((region) => {
    const owner = classes
      .filter(({ first, last }) => first < region.first && region.last <= last)
      .at(-1)
    return owner === undefined ? region : { ...region, owner: owner.name }
  })
  const around = (token: number): number => {
    let found = -1
    owned.forEach(({ kind, bodyFirst, last }, index) => {
      if (kind === 'function' && bodyFirst <= token && token <= last) found = index
    })
    return found
  }
  const declarations = [
    ...parameters.map(({ name, token, regionFirst }): Declaration => ({
      name,
      token,
      kind: 'parameter',
      region: owned.findIndex(({ kind, first }) => kind === 'function' && first === regionFirst),
    })),
    ...named.map(({ name, token, kind }): Declaration => ({
      name,
      token,
      kind,
      region: around(token),
    })),
  ].sort((a, b) => a.token - b.token)
  return {
    regions: owned,
    declarations,
    statements: tokens.flatMap((token, at) => (token.first ? [at] : [])),
  }
}

/** The last token of the block whose header is on the line of `at`. */
function blockEnd(tokens: readonly Token[], at: number): number {
  const indent = tokens[at]!.indent
  for (let i = at + 1; i < tokens.length; i++) {
    if (tokens[i]!.first && tokens[i]!.indent <= indent) return i - 1
  }
  return tokens.length - 1
}

/** The last token of the logical line of `at`. */
export function statementEnd(tokens: readonly Token[], at: number): number {
  for (let i = at + 1; i < tokens.length; i++) if (tokens[i]!.first) return i - 1
  return tokens.length - 1
}

function inClassBody(
  classes: readonly { first: number; last: number }[],
  regions: readonly Region[],
  at: number,
): boolean {
  if (regions.some(({ kind, first, last }) => kind === 'function' && first <= at && at <= last))
    return false
  return classes.some(({ first, last }) => first <= at && at <= last)
}

function parameterNames(
  tokens: readonly Token[],
  open: number,
  close: number,
): { name: string; token: number }[] {
  const found: { name: string; token: number }[] = []
  let fresh = true
  for (let at = open + 1; at < close; at++) {
    const { kind, text, match } = tokens[at]!
    if (text === ',') fresh = true
    else if (fresh && kind === 'name') {
      found.push({ name: text, token: at })
      fresh = false
    }
    if (match > at) at = match
  }
  return found
}

/** Whether the name at `at` is bound here, by `=`, `for … in`, `as`, `:=` or an annotation. */
function assigned(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1]?.text
  const next = tokens[at + 1]?.text
  if (before === '.') return false
  if (before === 'as' || next === ':=') return true
  if (tokens[at]!.first && next === ':' && tokens[at + 2]?.kind === 'name') return true
  if (tokens[at]!.first && (next === '=' || next === ',')) return isTargetList(tokens, at)
  if (before === 'for' || (before === ',' && isLoopTarget(tokens, at))) return true
  return before === ',' && next === '=' && isTargetList(tokens, at)
}

function isTargetList(tokens: readonly Token[], at: number): boolean {
  let i = at
  while (i > 0 && !tokens[i]!.first) i--
  for (; i < tokens.length; i++) {
    const { kind, text } = tokens[i]!
    if (text === '=') return i >= at
    if (kind !== 'name' && text !== ',') return false
  }
  return false
}

function isLoopTarget(tokens: readonly Token[], at: number): boolean {
  for (let i = at - 1; i > 0 && at - i < 12; i--) {
    const { kind, text } = tokens[i]!
    if (text === 'for') return true
    if (kind !== 'name' && text !== ',' && text !== '(') return false
  }
  return false
}
