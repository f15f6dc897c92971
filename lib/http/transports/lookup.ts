import { isIP, type LookupFunction } from 'node:net'

type Addresses = { address: string; family: number }[]

/**
 * `lookup`, of the caller, as node:net can use it: it calls back once and later, with addresses of
 * the wanted family or an error, whatever the caller's function does. One that never calls back is
 * ended by the time limit of the connection.
 */
export function guardedLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    let over = false
    const settle = (error: Error | null, found: Addresses): void => {
      if (over) return
      over = true
      process.nextTick(() => {
        if (error !== null || options.all === true) callback(error, found)
        else callback(null, found[0]!.address, found[0]!.family)
      })
    }
    const fail = (cause: unknown): void => settle(lookupError(hostname, cause), [])
    try {
      const returned: unknown = lookup(hostname, options, (error, address) => {
        if (error !== null && error !== undefined) return fail(error)
        const found = addressesIn(address)
        if (found === null) return fail(new Error('it must give an IP address, or a list of them'))
        const wanted = familyOf(options.family)
        const fitting = found.filter((one) => wanted === 0 || one.family === wanted)
        if (fitting.length > 0) return settle(null, fitting)
        fail(new Error(wanted === 0 ? 'it gave no address' : `it gave no IPv${wanted} address`))
      })
      // An asynchronous function reports here what it throws.
      if (returned instanceof Promise) returned.catch(fail)
    } catch (cause) {
      fail(cause)
    }
  }
}

/** Resolves `host` to one address by `lookup`; by that of node:dns if it is null. */
export async function resolveOne(host: string, lookup: LookupFunction | null): Promise<string> {
  const resolve = lookup ?? process.getBuiltinModule('node:dns').lookup
  return await new Promise((done, reject) => {
    resolve(host, {}, (error, address) => {
      if (error === null) done(address as string)
      else reject(error)
    })
  })
}

/** The addresses in either form of the callback of dns.lookup(); null if it is something else. */
function addressesIn(address: unknown): Addresses | null {
  const list: unknown[] = Array.isArray(address) ? address : [{ address }]
  const found = list.map((one) => String((one as { address?: unknown } | null)?.address))
  if (found.some((text) => isIP(text) === 0)) return null
  return found.map((text) => ({ address: text, family: isIP(text) }))
}

function familyOf(family: number | 'IPv4' | 'IPv6' | undefined): number {
  return family === undefined ? 0 : Number(String(family).replace('IPv', ''))
}

/** Names the option, and keeps the code of what went wrong. */
function lookupError(hostname: string, cause: unknown): Error {
  const { code, message } = (cause ?? {}) as NodeJS.ErrnoException
  const error = new Error(`lookup of ${hostname}: ${message ?? String(cause)}`, { cause })
  return code === undefined ? error : Object.assign(error, { code })
}
