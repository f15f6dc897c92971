import type { Executor } from 'runwright/agent'

/** An executor without processes: every command fails at once. */
export const failingExecutor: Executor = {
  name: 'failing',
  run: () =>
    Promise.resolve({
      exitCode: 1,
      output: 'no',
      truncated: false,
      timedOut: false,
      durationMs: 1,
    }),
  killMarked: () => Promise.resolve(0),
}
