/** The file that a benchmark writes with `--json`; `docs/benchmarks.md` is generated from these. */

/** One contender in one scenario. */
export interface Row {
  readonly scenario: string
  readonly contender: string
  readonly median: number
  readonly min: number
  readonly max: number
  /** The unit of median, min and max. Less is better, except for `/s`. */
  readonly unit: string
  /** Median relative to that of the reference contender; null for that one, or without one. */
  ratio: number | null
  /** Microseconds of CPU per operation; null if not measured. */
  readonly cpu: number | null
  /** The target for our figure, such as `<= 1.00x`; null without one. */
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
  /** `day` and `mode` are added by `run.ts`. */
  readonly day?: string
  readonly mode?: 'full' | 'quick'
}
