export interface TableEntry {
  readonly name: string
  readonly value: string
  /** In bytes, with the overhead of an entry (RFC 7541, section 4.1). */
  readonly size: number
}

/** Bytes that each entry counts in addition to its name and value. */
export const ENTRY_OVERHEAD = 32
/** The size of both tables unless SETTINGS change it (RFC 9113, section 6.5.2). */
export const DEFAULT_TABLE_SIZE = 4096

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
export const STATIC_TABLE: readonly TableEntry[] = NAMES.split(',').map((field) => {
  const [name = '', ...value] = field.replace('~', ',').split(' ')
  return entryOf(name, value.join(' '))
})

/** `bytes` is the length of name and value on the wire, where UTF-8 makes it differ. */
export function entryOf(
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
export class DynamicTable {
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
