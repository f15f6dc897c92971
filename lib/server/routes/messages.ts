/** Messages to runs that have not ended. @module */
import { MESSAGE_SCHEMA } from '../../agent/index.js'
import type { ServiceContext } from '../context.js'
import { MESSAGE_RESULT } from '../describe/workspace-schemas.js'
import { json } from '../messages/reply.js'
import type { RouteDefinition } from '../router.js'
import { IDEMPOTENCY_KEY, readIdempotencyKey, readRequest } from './calls.js'

/** Creates the route that sends a message to a run. */
export function messageRoutes({ engine, config }: ServiceContext): readonly RouteDefinition[] {
  return [
    {
      method: 'POST',
      path: '/api/runs/{run_id}/messages',
      operation: {
        id: 'sendMessage',
        summary: 'Send text to the model of a run',
        description: 'The model gets it before its next call, or before the next iteration.',
        parameters: [IDEMPOTENCY_KEY],
        body: { schema: MESSAGE_SCHEMA },
        answers: { 202: { description: 'the message is stored', schema: MESSAGE_RESULT } },
        problems: [404, 409, 429],
      },
      handle: async (call) => {
        const { request, parameter, caller } = call
        const idempotencyKey = readIdempotencyKey(request)
        const message = await readRequest(call, config)
        return json(202, await engine.message(parameter, message, { caller, idempotencyKey }))
      },
    },
  ]
}
