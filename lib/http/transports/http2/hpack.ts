import { isSensitiveHeader } from '../../headers.js'
import { readable, withoutBlanks } from '../../field-text.js'
import { decodeHuffman } from './hpack-huffman.js'
import {
  DEFAULT_TABLE_SIZE,
  DynamicTable,
  ENTRY_OVERHEAD,
  entryOf,
  STATIC_TABLE,
  type TableEntry,
} from './hpack-table.js'

/** A compressed header section that cannot be decoded, after which the connection is of no use. */
export class HpackError extends Error {}

/** What a header block stands for. */
export interface FieldSection {
  /** Name, value, name, value, …; pseudo-header fields with their colon. */
  readonly fields: string[]
  /** What makes it malformed (RFC 9113, section 8.2.1), or null. */
  readonly fault: string | null
}

const FIELD_NAME = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/
const FORBIDDEN_IN_VALUE = /[\0-\x08\n-\x1f\x7f]/
/** No index, length or size in a sound header block needs more bits. */
const MAX_INTEGER = 2 ** 28
const MAX_FIELDS = 1000

/**
 * Decodes the header blocks that a peer sends (RFC 7541), in the order in which they come: each may
 * refer to what those before have put into the table.
 */
export class HpackDecoder {
  readonly #table = new DynamicTable()
  readonly #maxOctets: number
  #block: Buffer = Buffer.alloc(0)
  #at = 0
  #fault: string | null = null

  /** @param maxOctets - Of one section, uncompressed; what is beyond makes it malformed. */
  constructor(maxOctets: number) {
    this.#maxOctets = maxOctets
  }

  /** @throws {@link HpackError} when the block is broken. */
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
      // The rest is decoded all the same, for the sake of the table.
      if (size > this.#maxOctets || fields.length >= 2 * MAX_FIELDS) {
        this.#fault ??= `the response head is larger than ${this.#maxOctets} octets or ${MAX_FIELDS} fields`
      } else fields.push(entry.name, entry.value)
    }
    return { fields, fault: this.#fault }
  }

  /** One field by its representation (section 6); null for a change of the table's size. */
  #field(first: number, atStart: boolean): TableEntry | null {
    if ((first & 0x80) !== 0) return this.#entry(this.#integer(7))
    if ((first & 0xe0) === 0x20) {
      const size = this.#integer(5)
      if (!atStart || size > DEFAULT_TABLE_SIZE)
        throw new HpackError('a table size is out of place or too large')
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
    const entry = entryOf(name, readable(withoutBlanks(value)), name.length + value.length)
    if (indexed) this.#table.add(entry)
    return entry
  }

  #entry(index: number): TableEntry {
    const entry = this.#table.get(index)
    if (entry === undefined) throw new HpackError(`there is no field with index ${index}`)
    return entry
  }

  /** An integer whose first `bits` bits share an octet (section 5.1). */
  #integer(bits: number): number {
    const most = (1 << bits) - 1
    let value = this.#octet() & most
    if (value < most) return value
    for (let factor = 1; ; factor *= 128) {
      const octet = this.#octet()
      value += (octet & 0x7f) * factor
      if (value > MAX_INTEGER || factor > MAX_INTEGER)
        throw new HpackError('an integer is too large')
      if (octet < 0x80) return value
    }
  }

  #string(): string {
    if (this.#at >= this.#block.length) throw new HpackError('a field is cut short')
    const coded = (this.#block[this.#at]! & 0x80) !== 0
    const length = this.#integer(7)
    const start = this.#at
    const end = start + length
    if (end > this.#block.length) throw new HpackError('a field is cut short')
    this.#at = end
    if (!coded) return this.#block.toString('latin1', start, end)
    const text = decodeHuffman(this.#block, start, end)
    if (text === null) throw new HpackError('a Huffman code is broken')
    return text
  }

  #octet(): number {
    const octet = this.#block[this.#at++]
    if (octet === undefined) throw new HpackError('a field is cut short')
    return octet
  }
}

const STATIC_NAMES = new Map<string, number>()
const STATIC_FIELDS = new Map<string, number>()
for (const [i, { name, value }] of STATIC_TABLE.entries()) {
  if (!STATIC_NAMES.has(name)) STATIC_NAMES.set(name, i + 1)
  if (value !== '') STATIC_FIELDS.set(`${name} ${value}`, i + 1)
}

/** Fields that differ from request to request and would only push the others out of the table. */
const FLEETING = new Set([
  ':path',
  'content-length',
  'if-modified-since',
  'if-none-match',
  'range',
  'traceparent',
])

/**
 * Encodes header blocks (RFC 7541) as strings of octets. Fields go into the table when they are
 * likely to come again; those with secrets are marked never to be indexed, by us or anyone between
 * (section 7.1.3). Strings are sent plain: a field that comes again costs an octet or two, and
 * Huffman's third off the others is not worth its time.
 */
export class HpackEncoder {
  readonly #table = new DynamicTable()
  /** The newest entry of each name and when it was added. */
  readonly #newest = new Map<string, { readonly value: string; readonly number: number }>()
  #sizeToTell: number | null = null

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  limitTable(size: number): void {
    const own = Math.min(size, DEFAULT_TABLE_SIZE)
    if (own === this.#table.maxSize) return
    this.#table.resize(own)
    this.#sizeToTell = own
  }

  /** What a block begins with: the size of the table where it has changed. */
  begin(): string {
    if (this.#sizeToTell === null) return ''
    const text = integer(0x20, 5, this.#sizeToTell)
    this.#sizeToTell = null
    return text
  }

  /** One field; `name` is in lower case. */
  field(name: string, value: string): string {
    const known = this.#newest.get(name)
    if (known !== undefined && known.value === value) {
      const age = this.#table.added - known.number
      if (age < this.#table.length) return integer(0x80, 7, STATIC_TABLE.length + 1 + age)
    }
    const whole = STATIC_FIELDS.get(`${name} ${value}`)
    if (whole !== undefined) return integer(0x80, 7, whole)
    if (isSensitiveHeader(name)) return literal(0x10, 4, name, octets(value))
    if (FLEETING.has(name)) return literal(0, 4, name, octets(value))
    return this.#add(name, value)
  }

  #add(name: string, value: string): string {
    const wire = octets(value)
    const entry = entryOf(name, value, name.length + wire.length)
    if (entry.size > DEFAULT_TABLE_SIZE / 4 || this.#table.maxSize < DEFAULT_TABLE_SIZE / 4) {
      return literal(0, 4, name, wire)
    }
    this.#table.add(entry)
    // Names that went out of the table long ago are forgotten all at once.
    if (this.#newest.size > (2 * DEFAULT_TABLE_SIZE) / ENTRY_OVERHEAD) this.#newest.clear()
    this.#newest.set(name, { value, number: this.#table.added })
    return literal(0x40, 6, name, wire)
  }
}

/** A field value as octets, one character each. */
function octets(value: string): string {
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

/** An integer behind the `8 - bits` bits of `pattern` (section 5.1). */
function integer(pattern: number, bits: number, value: number): string {
  const most = (1 << bits) - 1
  if (value < most) return String.fromCharCode(pattern | value)
  let text = String.fromCharCode(pattern | most)
  let left = value - most
  for (; left >= 128; left = Math.floor(left / 128))
    text += String.fromCharCode((left % 128) | 0x80)
  return text + String.fromCharCode(left)
}
