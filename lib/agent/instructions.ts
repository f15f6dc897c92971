/** What the model of a run is told besides its goal. @module */

/** The text of a project's `AGENTS.md`, as it was when a run was created. */
export interface ProjectInstructions {
  /** Relative to the folder of the run: `AGENTS.md`, `../AGENTS.md`, … */
  readonly path: string
  /** Without secrets. */
  readonly text: string
  /** Size of the file. */
  readonly bytes: number
  /** Were the last lines left out, because the file is too large? */
  readonly truncated: boolean
}

/** What `run_created` freezes of it, besides the `instructions` of the request. */
export interface FrozenInstructions {
  /** The host's system prompt; absent: the engine's own. */
  readonly system?: string
  /** The host's instructions. */
  readonly host?: string
  readonly project?: ProjectInstructions
}
