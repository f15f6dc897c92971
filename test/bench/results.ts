/** What a benchmark writes with `--json`, and what `docs/benchmarks.md` is made of. */

/** One line of a table. */
export interface Row {
  readonly scenario: string
  readonly contender: string
  readonly median: number
  readonly min: number
  readonly max: number
  /** Of the three figures. Less is better, but for `/s`. */
  readonly unit: string
  /** To the contender that the scenario compares with; null for itself, or where there is none. */
  ratio: number | null
  /** Microseconds of CPU for one of what is counted; null where it is not measured. */
  readonly cpu: number | null
  /** What ours must hold; null without one. */
  bar: string | null
  met: boolean | null
}

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGB: number
  readonly platform: string
  readonly pinned: boolean
}

export interface Results {
  readonly name: string
  readonly versions: Readonly<Record<string, string>>
  readonly machine: Machine
  readonly rows: readonly Row[]
  /** Added by `run.ts`: the day, and how it was measured. */
  readonly day?: string
  readonly mode?: 'full' | 'quick'
}
