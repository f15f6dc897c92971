import { readFileSync } from 'node:fs'

const read = (name: string): string =>
  readFileSync(new URL(`../fixtures/ws/${name}`, import.meta.url), 'utf8')

/** A self-signed certificate for localhost and 127.0.0.1, only for tests. */
export const certificate: string = read('localhost.crt')

/** The private key of {@link certificate}. */
export const key: string = read('localhost.key')
