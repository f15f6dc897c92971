import type { RunEngine, StoreDamage } from '../../agent/index.js'

/** The number of damaged runs, and of files that are missing or unreadable. */
export interface DamageCounts {
  readonly runs: number
  readonly files: number
}

/** What is known to be damaged; nothing when the store is closed. */
export function damageOf(engine: Pick<RunEngine, 'damage'>): StoreDamage {
  try {
    return engine.damage()
  } catch {
    return { runs: [], files: [] }
  }
}

export function countDamage({ runs, files }: StoreDamage): DamageCounts {
  return { runs: runs.length, files: files.length }
}

/** The numbers, and one cause of each kind: a list of all may be long. */
export function describeDamage({ runs, files }: StoreDamage): string | null {
  const parts: string[] = []
  const [run] = runs
  const [file] = files
  if (run !== undefined) parts.push(`damaged runs: ${runs.length}, ${run.runId}: ${run.reason}`)
  if (file !== undefined) parts.push(`damaged files: ${files.length}, ${file}`)
  return parts.length === 0 ? null : parts.join('; ')
}
