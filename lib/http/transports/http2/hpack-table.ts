/** A header field as HPACK keeps it. */
export interface TableEntry {
  readonly name: string
  readonly value: string
  /** Octets that it counts for (RFC 7541, section 4.1). */
  readonly size: number
}

/** What each field counts for besides its octets. */
export const ENTRY_OVERHEAD = 32
/** The size of both tables until a peer says otherwise (RFC 9113, section 6.5.2). */
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

/** Makes an entry; `octets` is the length of both on the wire where the strings do not say it. */
export function entryOf(
  name: string,
  value: string,
  octets: number = name.length + value.length,
): TableEntry {
  return { name, value, size: octets + ENTRY_OVERHEAD }
}

/**
 * The dynamic table of one direction (RFC 7541, section 2.3.2): the newest entry has the index after
 * the static ones; the oldest go when there is no room.
 */
export class DynamicTable {
  /** The newest last. */
  readonly #entries: TableEntry[] = []
  #size = 0
  #maxSize: number
  /** Entries that were ever added. */
  added = 0

  constructor(maxSize: number = DEFAULT_TABLE_SIZE) {
    this.#maxSize = maxSize
  }

  get maxSize(): number {
    return this.#maxSize
  }

  /** Entries that are there now. */
  get length(): number {
    return this.#entries.length
  }

  /** The entry at an index of the whole address space, or undefined. */
  get(index: number): TableEntry | undefined {
    const at = index - 1 - STATIC_TABLE.length
    return at < 0 ? STATIC_TABLE[index - 1] : this.#entries[this.#entries.length - 1 - at]
  }

  /** Adds an entry; one that is larger than the table empties it and is not kept (section 4.4). */
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
