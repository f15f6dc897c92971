import { readFileSync } from 'node:fs'
import { checkString } from '../../internal/options.js'
import type { Request } from '../request.js'
import type { BaseResponse } from '../response.js'
import { Auth, BasicAuth } from './auth.js'

/** The credentials of one machine in a netrc file. */
export interface NetrcEntry {
  readonly login: string
  readonly password: string
}

/** Entries by machine name; `""` is the default entry. */
export type Netrc = ReadonlyMap<string, NetrcEntry>

/** Parses a netrc file, with quoted values and comment lines. Macros are skipped. */
export function parseNetrc(text: string): Netrc {
  checkString('the text of a netrc file', text)
  const entries = new Map<string, NetrcEntry>()
  let name: string | null = null
  let login = ''
  let password = ''
  const finish = (): void => {
    if (name !== null && !entries.has(name)) entries.set(name, { login, password })
    name = null
    login = password = ''
  }
  const tokens = tokensOf(text)
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!
    if (token === 'machine') {
      finish()
      name = (tokens[++i] ?? '').toLowerCase()
    } else if (token === 'default') {
      finish()
      name = ''
    } else if (token === 'login' || token === 'user') login = tokens[++i] ?? ''
    else if (token === 'password') password = tokens[++i] ?? ''
    else if (token === 'account') i++
  }
  finish()
  return entries
}

function tokensOf(text: string): string[] {
  const tokens: string[] = []
  let inMacro = false
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === '') inMacro = false
    if (inMacro || line.trimStart().startsWith('#')) continue
    for (const [, quoted, plain] of line.matchAll(/"((?:[^"\\]|\\.)*)"?|(\S+)/g)) {
      if (plain === 'macdef') {
        inMacro = true
        break
      }
      tokens.push(quoted?.replace(/\\(.)/g, '$1') ?? plain!)
    }
  }
  return tokens
}

/** Reads a netrc file; one that cannot be read has no entries. */
function readNetrc(path: string): Netrc {
  try {
    return parseNetrc(readFileSync(path, 'utf8'))
  } catch {
    return new Map()
  }
}

/** Sends Basic credentials to the hosts that have an entry in a netrc file. */
export class NetrcAuth extends Auth {
  readonly #entries: Netrc

  /** @param file - Path of the file, or the result of {@link parseNetrc}. */
  constructor(file: string | Netrc) {
    super()
    this.#entries = typeof file === 'string' ? readNetrc(file) : file
  }

  override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
    const auth = this.authFor(request.url)
    if (auth === null) yield request
    else yield* auth.authFlow(request)
  }

  /** Credentials for the host of `url`, or null if neither it nor `default` has an entry. */
  authFor(url: URL): BasicAuth | null {
    const entry = this.#entries.get(url.hostname.toLowerCase()) ?? this.#entries.get('')
    return entry === undefined ? null : new BasicAuth(entry.login, entry.password)
  }
}
