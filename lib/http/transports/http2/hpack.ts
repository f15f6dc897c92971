import { decodeValue, trimBlanks } from '../../field-values.js'
import { isSensitiveHeader } from '../../headers.js'

export interface TableEntry {
  readonly name: string
  readonly value: string
  /** In bytes, with the overhead of an entry (RFC 7541, section 4.1). */
  readonly size: number
}

/** Bytes that each entry counts in addition to its name and value. */
const ENTRY_OVERHEAD = 32
/** The size of both tables unless SETTINGS change it (RFC 9113, section 6.5.2). */
const DEFAULT_TABLE_SIZE = 4096

const NAMES =
  ':authority,:method GET,:method POST,:path /,:path /index.html,:scheme http,:scheme https,' +
  ':status 200,:status 204,:status 206,:status 304,:status 400,:status 404,:status 500,' +
  'accept-charset,accept-encoding gzip~ deflate,accept-language,accept-ranges,accept,' +
  'access-control-allow-origin,age,allow,authorization,cache-control,content-disposition,' +
  'content-encoding,content-language,content-length,content-location,content-range,content-type,' +
  'cookie,date,etag,expect,expires,from,host,if-match,if-modified-since,if-none-match,if-range,' +
  'if-unmodified-since,last-modified,link,location,max-forwards,proxy-authenticate,' +
  'proxy-authorization,range,referer,refresh,retry-after,server,set-cookie,' +
  'strict-transport-security,transfer-encoding,user-agent,vary,via,www-authenticate'

/** The static table (RFC 7541, appendix A); its first entry has index 1. */
const STATIC_TABLE: readonly TableEntry[] = NAMES.split(',').map((field) => {
  const [name = '', ...value] = field.replace('~', ',').split(' ')
  return entryOf(name, value.join(' '))
})

/** `bytes` is the length of name and value on the wire, where UTF-8 makes it differ. */
function entryOf(
  name: string,
  value: string,
  bytes: number = name.length + value.length,
): TableEntry {
  return { name, value, size: bytes + ENTRY_OVERHEAD }
}

/**
 * The dynamic table of one direction (RFC 7541, section 2.3.2): the newest entry has the index
 * after the static ones; the oldest are evicted when there is no room.
 */
class DynamicTable {
  /** The newest last. */
  readonly #entries: TableEntry[] = []
  #size = 0
  #maxSize: number
  /** How many entries were ever added. */
  added = 0

  constructor(maxSize: number = DEFAULT_TABLE_SIZE) {
    this.#maxSize = maxSize
  }

  get maxSize(): number {
    return this.#maxSize
  }

  get length(): number {
    return this.#entries.length
  }

  /** The entry at an index that counts the static table first, or undefined. */
  get(index: number): TableEntry | undefined {
    const at = index - 1 - STATIC_TABLE.length
    return at < 0 ? STATIC_TABLE[index - 1] : this.#entries[this.#entries.length - 1 - at]
  }

  /** Adds an entry; one larger than the table empties it and is not added (section 4.4). */
  add(entry: TableEntry): void {
    this.#evict(this.#maxSize - entry.size)
    this.added++
    if (entry.size > this.#maxSize) return
    this.#entries.push(entry)
    this.#size += entry.size
  }

  resize(maxSize: number): void {
    this.#maxSize = maxSize
    this.#evict(maxSize)
  }

  #evict(size: number): void {
    while (this.#size > size && this.#entries.length > 0) this.#size -= this.#entries.shift()!.size
  }
}

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

/** A header block that cannot be decoded: the table is out of step, so the connection must end. */
export class HpackError extends Error {}

/** A decoded header block: the head or the trailers of a message. */
export interface FieldSection {
  /** Name, value, name, value, …; pseudo-header fields with their colon. */
  readonly fields: string[]
  /** Error text when the section is malformed (RFC 9113, section 8.2.1), else null. */
  readonly fault: string | null
}

const FIELD_NAME = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/
const FORBIDDEN_IN_VALUE = /[\0-\x08\n-\x1f\x7f]/
/** Larger than any index, length or size in a valid header block. */
const MAX_INTEGER = 2 ** 28
const MAX_FIELDS = 1000

/**
 * Decodes the header blocks of a connection (RFC 7541), in the order of arrival: each may refer to
 * table entries of those before it.
 */
export class HpackDecoder {
  readonly #table = new DynamicTable()
  readonly #maxBytes: number
  #block: Buffer = Buffer.alloc(0)
  #at = 0
  #fault: string | null = null

  /** @param maxBytes - Largest section, uncompressed; a larger one is malformed. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** @throws {@link HpackError} when the block is invalid. */
  decode(block: Buffer): FieldSection {
    this.#block = block
    this.#at = 0
    this.#fault = null
    const fields: string[] = []
    let size = 0
    while (this.#at < block.length) {
      const entry = this.#field(block[this.#at]!, fields.length === 0)
      if (entry === null) continue
      size += entry.size
      // Decoding goes on to keep the table in step with the server's.
      if (size > this.#maxBytes || fields.length >= 2 * MAX_FIELDS) {
        const limit = `${this.#maxBytes} bytes or ${MAX_FIELDS} fields`
        this.#fault ??= `the response head is larger than ${limit}`
      } else fields.push(entry.name, entry.value)
    }
    return { fields, fault: this.#fault }
  }

  /** Decodes one representation (section 6); null for a change of the table's size. */
  #field(first: number, atStart: boolean): TableEntry | null {
    if ((first & 0x80) !== 0) return this.#entry(this.#integer(7))
    if ((first & 0xe0) === 0x20) {
      const size = this.#integer(5)
      if (!atStart || size > DEFAULT_TABLE_SIZE)
        throw new HpackError('a table size update is misplaced or too large')
      this.#table.resize(size)
      return null
    }
    const indexed = (first & 0x40) !== 0
    const index = this.#integer(indexed ? 6 : 4)
    const name = index === 0 ? this.#string() : this.#entry(index).name
    const value = this.#string()
    if (index === 0 && !FIELD_NAME.test(name))
      this.#fault ??= 'the server sent a malformed field name'
    if (FORBIDDEN_IN_VALUE.test(value)) this.#fault ??= 'the server sent a malformed field value'
    const entry = entryOf(name, decodeValue(trimBlanks(value)), name.length + value.length)
    if (indexed) this.#table.add(entry)
    return entry
  }

  #entry(index: number): TableEntry {
    const entry = this.#table.get(index)
    if (entry === undefined) throw new HpackError(`the table has no entry ${index}`)
    return entry
  }

  /** An integer whose prefix is the low `bits` bits of the next byte (section 5.1). */
  #integer(bits: number): number {
    const max = (1 << bits) - 1
    let value = this.#byte() & max
    if (value < max) return value
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#byte()
      value += (byte & 0x7f) * factor
      if (value > MAX_INTEGER || factor > MAX_INTEGER)
        throw new HpackError('an integer is too large')
      if (byte < 0x80) return value
    }
  }

  #string(): string {
    if (this.#at >= this.#block.length) throw new HpackError('a field is cut short')
    const huffman = (this.#block[this.#at]! & 0x80) !== 0
    const length = this.#integer(7)
    const start = this.#at
    const end = start + length
    if (end > this.#block.length) throw new HpackError('a field is cut short')
    this.#at = end
    if (!huffman) return this.#block.toString('latin1', start, end)
    const text = decodeHuffman(this.#block, start, end)
    if (text === null) throw new HpackError('a Huffman code is invalid')
    return text
  }

  #byte(): number {
    const byte = this.#block[this.#at++]
    if (byte === undefined) throw new HpackError('a field is cut short')
    return byte
  }
}

const STATIC_NAMES = new Map<string, number>()
const STATIC_FIELDS = new Map<string, number>()
for (const [i, { name, value }] of STATIC_TABLE.entries()) {
  if (!STATIC_NAMES.has(name)) STATIC_NAMES.set(name, i + 1)
  if (value !== '') STATIC_FIELDS.set(`${name} ${value}`, i + 1)
}

/** Fields whose values rarely repeat: they would only evict others from the table. */
const NOT_INDEXED = new Set([
  ':path',
  'content-length',
  'if-modified-since',
  'if-none-match',
  'range',
  'traceparent',
])

/**
 * Encodes header blocks (RFC 7541) as strings of one byte per character. Fields that are likely to
 * repeat go into the table; those with secrets are marked never to be indexed, by intermediaries
 * either (section 7.1.3). Strings are not Huffman coded: a repeated field costs one or two bytes
 * anyway, and saving a third of the others is not worth the time.
 */
export class HpackEncoder {
  readonly #table = new DynamicTable()
  /** The newest entry of each name, and its number in the order of adding. */
  readonly #newest = new Map<string, { readonly value: string; readonly number: number }>()
  /** A table size that the next block must announce. */
  #newSize: number | null = null

  /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE, up to the default size. */
  limitTable(size: number): void {
    const limited = Math.min(size, DEFAULT_TABLE_SIZE)
    if (limited === this.#table.maxSize) return
    this.#table.resize(limited)
    this.#newSize = limited
  }

  /** The start of a block: a table size update where the size has changed. */
  begin(): string {
    if (this.#newSize === null) return ''
    const text = integer(0x20, 5, this.#newSize)
    this.#newSize = null
    return text
  }

  /** Encodes one field; `name` is in lower case. */
  field(name: string, value: string): string {
    const known = this.#newest.get(name)
    if (known !== undefined && known.value === value) {
      const age = this.#table.added - known.number
      if (age < this.#table.length) return integer(0x80, 7, STATIC_TABLE.length + 1 + age)
    }
    const whole = STATIC_FIELDS.get(`${name} ${value}`)
    if (whole !== undefined) return integer(0x80, 7, whole)
    if (isSensitiveHeader(name)) return literal(0x10, 4, name, asBytes(value))
    if (NOT_INDEXED.has(name)) return literal(0, 4, name, asBytes(value))
    return this.#add(name, value)
  }

  #add(name: string, value: string): string {
    const wire = asBytes(value)
    const entry = entryOf(name, value, name.length + wire.length)
    if (entry.size > DEFAULT_TABLE_SIZE / 4 || this.#table.maxSize < DEFAULT_TABLE_SIZE / 4) {
      return literal(0, 4, name, wire)
    }
    this.#table.add(entry)
    // Bounds the map: most of its names have left the table by now.
    if (this.#newest.size > (2 * DEFAULT_TABLE_SIZE) / ENTRY_OVERHEAD) this.#newest.clear()
    this.#newest.set(name, { value, number: this.#table.added })
    return literal(0x40, 6, name, wire)
  }
}

/** `value` in UTF-8, one byte per character. */
function asBytes(value: string): string {
  return /[^\0-\x7f]/.test(value) ? Buffer.from(value, 'utf8').toString('latin1') : value
}

function literal(pattern: number, bits: number, name: string, value: string): string {
  const index = STATIC_NAMES.get(name)
  const head =
    index === undefined
      ? integer(pattern, bits, 0) + integer(0, 7, name.length) + name
      : integer(pattern, bits, index)
  return head + integer(0, 7, value.length) + value
}

/** An integer with a prefix of `bits` bits, after the bits of `pattern` (section 5.1). */
function integer(pattern: number, bits: number, value: number): string {
  const max = (1 << bits) - 1
  if (value < max) return String.fromCharCode(pattern | value)
  let text = String.fromCharCode(pattern | max)
  let left = value - max
  for (; left >= 128; left = Math.floor(left / 128))
    text += String.fromCharCode((left % 128) | 0x80)
  return text + String.fromCharCode(left)
}
