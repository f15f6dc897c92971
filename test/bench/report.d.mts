/** See `report.mjs`. */
import type { Row } from './results.js'

export function versionsOf(peers: readonly string[]): Record<string, string>
export function writeResults(
  path: string,
  results: {
    readonly name: string
    readonly versions: Readonly<Record<string, string>>
    readonly rows: readonly Row[]
    readonly pinned?: boolean
  },
): void
export function rowText(row: Row, columns?: number): string
