import { BlockList, isIP } from 'node:net'
import { hostOf, portOf } from './url.js'

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
