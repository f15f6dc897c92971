/**
 * Addresses and headers that client and server read alike.
 *
 * @module
 */
import { BlockList, isIP } from 'node:net'

/**
 * Which network addresses are this machine's, and which are of the public internet.
 */

/** Addresses outside the public internet (RFC 6890 and the registries that it set up). */
const SPECIAL = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  SPECIAL.addSubnet(net, prefix, 'ipv4')
}
// Public by number, but reached from inside a cloud only, where they serve settings and secrets of
// its machines: Azure's WireServer, IBM Cloud's service endpoints, the metadata of Equinix Metal.
for (const [net, prefix] of [
  ['168.63.129.16', 32],
  ['161.26.0.0', 16],
  ['166.8.0.0', 14],
  ['192.80.8.124', 32],
] as const) {
  SPECIAL.addSubnet(net, prefix, 'ipv4')
}
// Of IPv6 only global unicast is public, except ranges that are reserved or embed other addresses.
const GLOBAL = new BlockList()
GLOBAL.addSubnet('2000::', 3, 'ipv6')
for (const [net, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  SPECIAL.addSubnet(net, prefix, 'ipv6')
}

/** True for an address of the public internet. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !SPECIAL.check(address, 'ipv4')
  return family === 6 && GLOBAL.check(address, 'ipv6') && !SPECIAL.check(address, 'ipv6')
}

/** Whether the host of a URL always is this machine, with which a connection needs no TLS. */
export function isLoopback(host: string): boolean {
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    (isIP(host) === 4 && host.startsWith('127.')) ||
    host === '[::1]'
  )
}

/** A challenge of WWW-Authenticate or Proxy-Authenticate (RFC 9110, section 11.6.1). */
export interface Challenge {
  /** The authentication scheme, in lower case. */
  readonly scheme: string
  /** Parameters, by name in lower case. */
  readonly params: Readonly<Record<string, string>>
}

/** Parses the challenges of all fields; commas inside quotes do not separate. */
export function parseChallenges(fields: readonly string[]): Challenge[] {
  const challenges: { scheme: string; params: Record<string, string> }[] = []
  for (const field of fields) {
    // A parameter, or a word without "=", which begins a new challenge.
    const token = /([^\s,="]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/g
    for (const [, name, quoted, plain] of field.matchAll(token)) {
      const value = quoted?.replace(/\\(.)/g, '$1') ?? plain
      if (value === undefined) challenges.push({ scheme: name!.toLowerCase(), params: {} })
      else {
        const params = challenges.at(-1)?.params
        if (params !== undefined) params[name!.toLowerCase()] ??= value
      }
    }
  }
  return challenges
}

/**
 * Calls a function of the host's whose failure must not end the process: what it throws, and what
 * its promise is rejected with, goes to `failed`.
 */
export function callHost(call: () => unknown, failed: (error: unknown) => void): void {
  try {
    const result = call()
    if (typeof (result as PromiseLike<unknown> | null | undefined)?.then !== 'function') return
    Promise.resolve(result).catch(failed)
  } catch (error) {
    failed(error)
  }
}

/** Pages without an item in a row: no list that ends has as many. */
const MAX_EMPTY_PAGES = 64

/**
 * Watches the cursors of a list that another program serves in pages, so that one without an end is
 * an error. A cursor that comes again is noticed in constant memory (Brent's algorithm), when the
 * list has gone round a few times at the latest.
 */
export class PageCheck {
  #kept: string | null = null
  #age = 0
  #keptFor = 1
  #empty = 0

  /**
   * Takes the cursor of the next page, and how many items the page before it has.
   *
   * @returns why the list does not end, as a predicate; null if it still may.
   */
  problem(cursor: string, items: number): string | null {
    if (cursor === this.#kept) return 'leads back to a page before it'
    this.#age += 1
    if (this.#age === this.#keptFor) {
      this.#kept = cursor
      this.#age = 0
      this.#keptFor *= 2
    }
    this.#empty = items > 0 ? 0 : this.#empty + 1
    return this.#empty < MAX_EMPTY_PAGES ? null : `has ${MAX_EMPTY_PAGES} empty pages in a row`
  }
}
