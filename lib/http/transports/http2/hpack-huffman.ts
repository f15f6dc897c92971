/**
 * The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
 *
 * The code is canonical: codes of equal length are consecutive, in the order of their symbols. So
 * their lengths define it: one base-32 digit for each byte from 0 to 255, then one for EOS.
 */
const LENGTHS =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca' +
  'd67777777777777777777777878djde6f56565666577666567655677777fbeds' +
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn' +
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrqu'

const EOS = 256
// An entry of `Machine.steps`: the next state, whether a byte is complete, whether the code is
// invalid, and that byte.
const NEXT = 0xffff
const EMITS = 1 << 16
const FAILS = 1 << 17
const BYTE_SHIFT = 24

interface Node {
  readonly state: number
  zero: Node | number | null
  one: Node | number | null
}

interface Machine {
  /** 16 entries for each state, one for each nibble. */
  readonly steps: Int32Array
  /** States in which a string may end: after less than a byte of padding, all ones. */
  readonly accepting: Uint8Array
}

let machine: Machine | null = null

/**
 * Decodes `bytes` from `start` to `end`.
 *
 * @returns the string, one byte per character; null when the code is invalid or its padding is not
 * a prefix of EOS shorter than a byte, which is a connection error.
 */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string | null {
  const { steps, accepting } = (machine ??= buildMachine())
  // The shortest code has five bits, which bounds the output.
  const out = Buffer.allocUnsafe(Math.ceil(((end - start) * 8) / 5))
  let length = 0
  let state = 0
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    for (let shift = 4; shift >= 0; shift -= 4) {
      const step = steps[state * 16 + ((byte >> shift) & 15)]!
      if ((step & FAILS) !== 0) return null
      if ((step & EMITS) !== 0) out[length++] = step >>> BYTE_SHIFT
      state = step & NEXT
    }
  }
  return accepting[state] === 1 ? out.toString('latin1', 0, length) : null
}

function buildMachine(): Machine {
  const nodes: Node[] = []
  const root = buildTree(nodes)
  const steps = new Int32Array(nodes.length * 16)
  for (const node of nodes) {
    for (let nibble = 0; nibble < 16; nibble++)
      steps[node.state * 16 + nibble] = walk(root, node, nibble)
  }
  const accepting = new Uint8Array(nodes.length)
  let padding: Node | number | null = root
  for (let bits = 0; bits < 8 && typeof padding === 'object' && padding !== null; bits++) {
    accepting[padding.state] = 1
    padding = padding.one
  }
  return { steps, accepting }
}

function walk(root: Node, from: Node, nibble: number): number {
  let node = from
  let emitted = 0
  for (let bit = 8; bit > 0; bit >>= 1) {
    const next = (nibble & bit) === 0 ? node.zero : node.one
    if (next === null || next === EOS) return FAILS
    if (typeof next === 'number') {
      emitted = EMITS | (next << BYTE_SHIFT)
      node = root
    } else node = next
  }
  return emitted | node.state
}

function buildTree(nodes: Node[]): Node {
  const make = (): Node => {
    const node: Node = { state: nodes.length, zero: null, one: null }
    nodes.push(node)
    return node
  }
  const root = make()
  const lengths = [...LENGTHS].map((digit) => Number.parseInt(digit, 32))
  const symbols = [...lengths.keys()].sort((a, b) => lengths[a]! - lengths[b]! || a - b)
  let code = 0
  let last = 0
  for (const symbol of symbols) {
    const length = lengths[symbol]!
    code <<= length - last
    last = length
    let node = root
    for (let bit = length - 1; bit > 0; bit--) {
      const side = (code >> bit) & 1 ? 'one' : 'zero'
      const next = (node[side] ??= make())
      node = next as Node
    }
    node[code & 1 ? 'one' : 'zero'] = symbol
    code++
  }
  return root
}
