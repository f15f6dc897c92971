/** A run to watch, for those who have none yet: of a host that offers one. @module */
import type { JsonObject } from '../../internal/json.js'
import type { ServiceConfig } from '../config.js'
import type { ServiceContext } from '../context.js'
import { NO_FIELDS } from '../describe/schemas.js'
import type { RouteDefinition } from '../router.js'
import {
  checkOpen,
  readNoFields,
  STARTED,
  startedReply,
  startRun,
  TRACEPARENT,
  traceOf,
} from './calls.js'

export function demoRoutes(
  context: ServiceContext,
  demo: NonNullable<ServiceConfig['demo']>,
): readonly RouteDefinition[] {
  const { engine, config } = context
  // One at a time: what the host prepares for one run must not be cleared away for the next one.
  let last: Promise<unknown> = Promise.resolve()
  return [
    {
      method: 'POST',
      path: '/api/demo',
      operation: {
        id: 'startDemo',
        summary: 'Start the demo of this host',
        description: 'Only of hosts that offer one, which the health tells.',
        parameters: [TRACEPARENT],
        body: { schema: NO_FIELDS, optional: true },
        answers: { 201: STARTED[201]! },
        problems: [409, 429],
      },
      handle: async (call) => {
        checkOpen(context)
        await readNoFields(call, config)
        const { request, caller, principal } = call
        const begin = (): ReturnType<typeof engine.create> =>
          startRun(context, call, async ({ admit }) => {
            await admit?.()
            // Checked like a body; what it lacks counts as absent.
            const start = (await demo(principal)) as unknown as JsonObject
            return await engine.create(start, { caller, trace: traceOf(request) })
          })
        const started = last.then(begin, begin)
        last = started
        const { details } = await started
        return startedReply(details, true, config)
      },
    },
  ]
}
