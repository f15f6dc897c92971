/**
 * Which network addresses are this machine's, and which are of the public internet.
 *
 * @module
 */
import { BlockList, isIP } from 'node:net'

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
