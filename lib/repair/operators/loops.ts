import type { SourceFile } from '../source.js'
import { functionAt } from './scope.js'

type Word = 'continue' | 'break'
type Depths = Readonly<Record<Word, Int32Array>>

/** How many blocks are around each token that the words may leave. */
const depths = new WeakMap<SourceFile, Depths>()

/** Whether a statement may stand at a token: `continue` and `break` only in loops. */
export function isAllowedAt(file: SourceFile, at: number, statement: string): boolean {
  const word = /^(?:continue|break)\b/.exec(statement)?.[0] as Word | undefined
  if (word === undefined) return true
  let found = depths.get(file)
  if (found === undefined) {
    found = { continue: depthsOf(file, /^(for|while|do)$/), break: depthsOf(file, BREAKABLE) }
    depths.set(file, found)
  }
  const around = found[word]
  const region = file.regions[functionAt(file, at)]
  return around[at]! > (region === undefined ? 0 : around[region.first]!)
}

const BREAKABLE = /^(for|while|do|switch)$/

function depthsOf(file: SourceFile, words: RegExp): Int32Array {
  const changes = new Int32Array(file.tokens.length + 1)
  const addBlock = (first: number, end: number): void => {
    changes[first]! += 1
    changes[end]! -= 1
  }
  if (file.language === 'python') addIndented(file, words, addBlock)
  else addBraced(file, words, addBlock)
  for (let at = 1; at < changes.length; at++) changes[at]! += changes[at - 1]!
  return changes
}

type AddBlock = (first: number, end: number) => void

/** A block ends before the first line that is indented no more than its head. */
function addIndented({ tokens }: SourceFile, words: RegExp, addBlock: AddBlock): void {
  const heads: number[] = []
  const endUntil = (indent: number, end: number): void => {
    while (heads.length > 0 && tokens[heads.at(-1)!]!.indent >= indent)
      addBlock(heads.pop()! + 1, end)
  }
  tokens.forEach((token, at) => {
    if (!token.first) return
    endUntil(token.indent, at)
    const { text } = token.text === 'async' ? (tokens[at + 1] ?? token) : token
    if (words.test(text)) heads.push(at)
  })
  endUntil(0, tokens.length)
}

function addBraced({ tokens }: SourceFile, words: RegExp, addBlock: AddBlock): void {
  tokens.forEach(({ kind, text }, at) => {
    if (kind !== 'keyword' || !words.test(text)) return
    const head = tokens[at + 1]?.text === 'await' ? at + 2 : at + 1
    const open = text === 'do' ? at + 1 : (tokens[head]?.match ?? -1) + 1
    const brace = tokens[open]
    // What comes before the closing brace is in the block.
    if (brace?.text === '{' && brace.match > open) addBlock(open, brace.match + 1)
  })
}
