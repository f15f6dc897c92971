import { constants } from 'node:os'
import { fieldOf } from './describe-error.js'

/** On Linux, codes that Node names nowhere. */
const LINUX: Readonly<Record<string, number>> = { EUCLEAN: 117, ENOMEDIUM: 123 }

/** By the code that Node makes up for errors of the system that it does not know. */
const names: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...(process.platform === 'linux' && LINUX),
    ...constants.errno,
  }).map(([name, number]) => [`Unknown system error ${-number}`, name]),
)

/** The `code` of an error of the system, by the name that manuals use; undefined without one. */
export function systemCode(error: unknown): string | undefined {
  const code = fieldOf(error, 'code')
  return typeof code === 'string' ? (names.get(code) ?? code) : undefined
}
