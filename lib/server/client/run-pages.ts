import type { RunSummary } from '../../agent/index.js'
import { RemoteProtocolError } from '../../http/index.js'
import { PageCheck } from '../../internal/web.js'

/** One page of runs, newest first. */
export interface RunList {
  readonly runs: readonly RunSummary[]
  /** The cursor of the next page; null on the last. */
  readonly next: string | null
}

/**
 * The runs of a list whose pages `read` gets, from the one at `cursor` or the first.
 *
 * @throws {@link RemoteProtocolError} for a list without an end.
 */
export async function* runsOf(
  cursor: string | undefined,
  read: (cursor: string | undefined) => Promise<RunList>,
): AsyncGenerator<RunSummary, void> {
  const check = new PageCheck()
  for (let at = cursor; ; ) {
    const { runs, next } = await read(at)
    yield* runs
    if (next === null) return
    const problem = check.problem(next, runs.length)
    if (problem !== null) throw new RemoteProtocolError(`the list of runs ${problem}`)
    at = next
  }
}
