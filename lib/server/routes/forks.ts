/** Forks: new runs from a point of another one. @module */
import { FORK_SCHEMA } from '../../agent/index.js'
import type { ServiceContext } from '../context.js'
import type { RouteDefinition } from '../router.js'
import {
  checkOpen,
  IDEMPOTENCY_KEY,
  readIdempotencyKey,
  readRequest,
  STARTED,
  startRun,
  startedReply,
  TRACEPARENT,
  traceOf,
} from './calls.js'

/** Creates the route that forks a run. */
export function forkRoutes(context: ServiceContext): readonly RouteDefinition[] {
  const { engine, config } = context
  return [
    {
      method: 'POST',
      path: '/api/runs/{run_id}/fork',
      operation: {
        id: 'forkRun',
        summary: 'Start a new run from the end of an iteration, or the start, of this one',
        description:
          'With its conversation and files. Isolated unless `workspace` says otherwise; in place ' +
          'only when the run has ended.',
        parameters: [IDEMPOTENCY_KEY, TRACEPARENT],
        body: { schema: FORK_SCHEMA, optional: true },
        answers: STARTED,
        problems: [404, 409, 410, 429, 501],
      },
      handle: async (call) => {
        checkOpen(context)
        const { request, parameter, caller } = call
        const idempotencyKey = readIdempotencyKey(request)
        const fork = await readRequest(call, config)
        const options = { caller, idempotencyKey, trace: traceOf(request) }
        const { details, created } = await startRun(context, call, (admission) =>
          engine.fork(parameter, fork, { ...options, ...admission }),
        )
        return startedReply(details, created, config)
      },
    },
  ]
}
