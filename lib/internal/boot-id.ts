import { readFileSync } from 'node:fs'

let known: string | null | undefined

/** Tells the starts of the machine apart; null where the system does not tell. */
export function bootId(): string | null {
  if (known === undefined) known = readBootId()
  return known
}

function readBootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return null
  }
}
