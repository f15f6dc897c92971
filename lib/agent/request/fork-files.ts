/** The files with which forks begin. */
export interface ForkFiles {
  /**
   * Does work in which `use` makes a checkpoint the fork's own, too: it stays when its run is
   * deleted, if the record of the fork is durable when the work is done.
   */
  keeping<T>(work: (use: UseCheckpoint) => Promise<T>): Promise<T>
  /** The paths in which a folder differs from a checkpoint. */
  differences(folder: string, checkpointId: string): Promise<readonly string[]>
}

/** @throws {@link CheckpointError} with `not_kept` when it is not stored any more. */
export type UseCheckpoint = (checkpointId: string) => Promise<void>
