/** Gates: where a run waits for a human. @module */
import { RESUME_SCHEMA, type ResumeAnswer } from '../../agent/index.js'
import type { ServiceContext } from '../context.js'
import { RESUME_RESULT, validate } from '../describe/schemas.js'
import { readJson } from '../messages/body.js'
import { json } from '../messages/reply.js'
import type { RouteDefinition } from '../router.js'

/** Creates the route that answers a gate. */
export function gateRoutes({ engine, config }: ServiceContext): readonly RouteDefinition[] {
  return [
    {
      method: 'POST',
      path: '/api/runs/{run_id}/resume',
      operation: {
        id: 'resumeRun',
        summary: 'Answer the open gate',
        description:
          'Does not wait for the run. The first answer counts; repeating it is harmless.',
        body: { schema: RESUME_SCHEMA },
        answers: { 200: { description: 'the answer is recorded', schema: RESUME_RESULT } },
        problems: [404, 409],
      },
      handle: async ({ request, parameter, caller }) => {
        const body = await readJson(request, config.maxBodyBytes)
        const answer = validate<ResumeAnswer>(RESUME_SCHEMA, body ?? {})
        return json(200, await engine.resume(parameter, answer, caller))
      },
    },
  ]
}
