/** When single tool calls wait for a human. */
export type Approval = 'never' | 'writes' | 'all'

/** A start request with every default filled in, as it is frozen in the log. */
export interface RunRequest {
  readonly goal: string
  /** Real path of the working directory. */
  readonly cwd: string
  readonly model_name: string
  readonly max_iterations: number
  readonly hitl_enabled: boolean
  /** Command that verifies a free-text goal. */
  readonly check: string | null
  readonly approval: Approval
  readonly max_total_tokens: number | null
  readonly max_cost_usd: number | null
  readonly max_seconds: number | null
  readonly metadata: { readonly [name: string]: string }
}
