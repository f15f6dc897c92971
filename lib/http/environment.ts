/**
 * The only file of this module that reads the environment. It reads nothing at import, and clients
 * with `trustEnv: false` never call it.
 *
 * @module
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { hostOf, portOf } from './url.js'

type Environment = Readonly<Record<string, string | undefined>>

/** The proxy settings of the environment. */
export interface ProxyEnvironment {
  /** The URL of the proxy for `url`; null for a direct connection. */
  proxyFor(url: URL): string | null
}

/**
 * Reads HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; null when no proxy is set. Lower-case
 * names take precedence. Under CGI, where a request header can set it, upper-case HTTP_PROXY is
 * ignored.
 */
export function proxiesFromEnvironment(env: Environment = process.env): ProxyEnvironment | null {
  const read = (name: string): string | null => {
    // An empty lower-case variable counts: it switches off the upper-case one.
    const lower = env[name]
    if (lower !== undefined) return lower === '' ? null : lower
    if (name === 'http_proxy' && env['REQUEST_METHOD'] !== undefined) return null
    const upper = env[name.toUpperCase()]
    return upper === undefined || upper === '' ? null : upper
  }
  const all = read('all_proxy')
  const http = read('http_proxy') ?? all
  const https = read('https_proxy') ?? all
  if (http === null && https === null) return null
  const rules = parseNoProxy(read('no_proxy') ?? '')
  return {
    proxyFor: (url) => {
      const proxy = url.protocol === 'https:' ? https : http
      if (proxy === null || isNoProxy(url, rules)) return null
      return /^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`
    },
  }
}

/** The certificates of SSL_CERT_FILE, else of the files in SSL_CERT_DIR; null if neither is set. */
export function certificatesFromEnvironment(env: Environment = process.env): string[] | null {
  const file = env['SSL_CERT_FILE']
  if (file !== undefined && file !== '') return [readFileSync(file, 'utf8')]
  const folder = env['SSL_CERT_DIR']
  if (folder === undefined || folder === '') return null
  return certificatesIn(folder)
}

/** The certificates in a folder; files without one are skipped. */
export function certificatesIn(folder: string): string[] {
  const found: string[] = []
  for (const name of readdirSync(folder)) {
    try {
      const text = readFileSync(join(folder, name), 'utf8')
      if (text.includes('-----BEGIN CERTIFICATE-----')) found.push(text)
    } catch {
      // Certificate folders often contain subfolders and dangling links.
    }
  }
  return found
}

/** SSLKEYLOGFILE: the file to which TLS keys are logged for tools that decrypt captured traffic. */
export function keyLogFile(env: Environment = process.env): string | null {
  const file = env['SSLKEYLOGFILE']
  return file === undefined || file === '' ? null : file
}

/** The path of the netrc file: NETRC, or ~/.netrc; null when there is no such file. */
export function netrcFile(env: Environment = process.env): string | null {
  const named = env['NETRC']
  const file = named !== undefined && named !== '' ? named : join(homedir(), '.netrc')
  return existsSync(file) ? file : null
}

/** One entry of NO_PROXY. `host` is that of `url`, without brackets or a final dot. */
export interface NoProxyRule {
  matches(url: URL, host: string): boolean
}

/**
 * Parses NO_PROXY. Its entries are separated by commas or whitespace: `*`, a name (which includes
 * its subdomains), `.suffix` (subdomains only), an address or a CIDR block; each with an optional
 * port, and with an optional scheme before it.
 */
export function parseNoProxy(text: string): NoProxyRule[] {
  return text
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(parseEntry)
}

/** Whether any rule excludes `url` from the proxy. */
export function isNoProxy(url: URL, rules: readonly NoProxyRule[]): boolean {
  const host = hostOf(url).replace(/\.$/, '')
  return rules.some((rule) => rule.matches(url, host))
}

function parseEntry(entry: string): NoProxyRule {
  if (entry === '*') return { matches: () => true }
  const scheme = /^(https?):\/\//i.exec(entry)?.[1]?.toLowerCase() ?? null
  const rest = entry.replace(/^https?:\/\//i, '').toLowerCase()
  const [name, port] = splitPort(rest)
  const hostMatches = hostTest(name)
  return {
    matches: (url, host) =>
      (scheme === null || url.protocol === `${scheme}:`) &&
      (port === null || port === portOf(url)) &&
      hostMatches(host),
  }
}

function splitPort(text: string): [string, number | null] {
  const bracketed = /^\[([^\]]*)\](?::([0-9]+))?$/.exec(text)
  if (bracketed !== null)
    return [bracketed[1]!, bracketed[2] === undefined ? null : Number(bracketed[2])]
  const match = /^([^:]*):([0-9]+)$/.exec(text)
  return match === null ? [text, null] : [match[1]!, Number(match[2])]
}

function hostTest(name: string): (host: string) => boolean {
  const block = /^(.+)\/([0-9]{1,3})$/.exec(name)
  if (block !== null && isIP(block[1]!) !== 0) return blockTest(block[1]!, Number(block[2]))
  if (isIP(name) !== 0) return blockTest(name, isIP(name) === 6 ? 128 : 32)
  const suffix = name.replace(/^\*?\./, '.')
  if (suffix.startsWith('.')) return (host) => host.endsWith(suffix)
  return (host) => host === name || host.endsWith(`.${name}`)
}

function blockTest(address: string, prefix: number): (host: string) => boolean {
  const family = isIP(address)
  if (prefix > (family === 6 ? 128 : 32)) return () => false
  const list = new BlockList()
  list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
  return (host) => isIP(host) !== 0 && list.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
}
