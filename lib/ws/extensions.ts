/** One element of a Sec-WebSocket-Extensions header: its name and parameters in order. */
export interface ExtensionOffer {
  readonly name: string
  /** `true` for a parameter without a value. Duplicates are kept, because they void the offer. */
  readonly parameters: readonly (readonly [name: string, value: string | true])[]
}

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y
const QUOTED = /"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t\x20-\x7e\x80-\xff])*)"/y
const SPACE = /[ \t]*/y
const WHOLE_TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Whether `text` is a token of RFC 9110, section 5.6.2. */
export function isToken(text: string): boolean {
  return WHOLE_TOKEN.test(text)
}

/**
 * Reads a Sec-WebSocket-Extensions header (RFC 6455, section 9.1). Linear in its length.
 *
 * @returns `null` when it breaks the grammar. Empty list elements are accepted, which RFC 9110,
 * section 5.6.1, requires of a recipient.
 */
export function parseExtensions(header: string): readonly ExtensionOffer[] | null {
  const scan = new Scanner(header)
  const offers: ExtensionOffer[] = []
  for (;;) {
    while (scan.skip(','));
    if (scan.done) return offers
    const offer = readOffer(scan)
    if (offer === null) return null
    offers.push(offer)
    if (!scan.done && !scan.skip(',')) return null
  }
}

function readOffer(scan: Scanner): ExtensionOffer | null {
  const name = scan.match(TOKEN)
  if (name === null) return null
  const parameters: [string, string | true][] = []
  while (scan.skip(';')) {
    const key = scan.match(TOKEN)
    if (key === null) return null
    const value = scan.skip('=') ? readValue(scan) : true
    if (value === null) return null
    parameters.push([key, value])
  }
  return { name, parameters }
}

/** A token, or a quoted string that contains a token (RFC 6455, section 9.1). */
function readValue(scan: Scanner): string | null {
  const token = scan.match(TOKEN)
  if (token !== null) return token
  const quoted = scan.match(QUOTED)?.replace(/\\(.)/g, '$1')
  return quoted !== undefined && isToken(quoted) ? quoted : null
}

/** A cursor over a header; it skips blanks around all that it reads. */
class Scanner {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
    this.#blanks()
  }

  get done(): boolean {
    return this.#at === this.#text.length
  }

  skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at++
    this.#blanks()
    return true
  }

  match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (found === null) return null
    this.#at = pattern.lastIndex
    this.#blanks()
    return found[1] ?? found[0]
  }

  #blanks(): void {
    SPACE.lastIndex = this.#at
    SPACE.exec(this.#text)
    this.#at = SPACE.lastIndex
  }
}
