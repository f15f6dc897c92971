/** What the host offers, how the service is, and how it is spoken to. @module */
import { RESUME_SCHEMA, START_REQUEST_SCHEMA } from '../../agent/index.js'
import { describeStreams } from '../describe/asyncapi.js'
import { Health } from '../monitoring/health.js'
import { json, jsonText } from '../messages/reply.js'
import { METRICS_TYPE } from '../monitoring/metrics.js'
import type { Monitor } from '../monitoring/monitor.js'
import { ProblemError } from '../errors.js'
import { describeApi } from '../describe/openapi.js'
import type { Call, Route, RouteDefinition } from '../router.js'
import * as schemas from '../describe/schemas.js'
import { VERSION } from '../version.js'
import { JSON_ONLY, type RouteContext } from './route-context.js'

/** Schemas that the API description gives a name. */
const NAMED = {
  StartRequest: START_REQUEST_SCHEMA,
  RunDetails: schemas.RUN_DETAILS,
  RunSummary: schemas.RUN_SUMMARY,
  Gate: schemas.GATE,
  ResumeRequest: RESUME_SCHEMA,
  ResumeResult: schemas.RESUME_RESULT,
  AgentEvent: schemas.AGENT_EVENT,
  Model: schemas.MODEL_INFO,
  Goal: schemas.GOAL_INFO,
  Health: schemas.HEALTH,
  Problem: schemas.PROBLEM,
} as const

/** The routes about the service itself. `all` gives every route, this one's own included. */
export function metaRoutes(
  context: RouteContext,
  all: () => readonly Route[],
): readonly RouteDefinition[] {
  const { engine, config } = context
  const health = new Health(engine, () => context.isDraining())
  let description: string | undefined
  let streams: string | undefined
  // A store that is closed or broken cannot count any more; the status tells.
  const counts = (): Promise<object | undefined> => engine.counts().catch(() => undefined)
  return [
    {
      method: 'GET',
      path: '/api/models',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'listModels',
        summary: 'Models that this host offers',
        answers: {
          200: { description: 'models', schema: { type: 'array', items: schemas.MODEL_INFO } },
        },
        problems: [],
      },
      handle: () => json(200, engine.models()),
    },
    {
      method: 'GET',
      path: '/api/goals',
      access: 'caller',
      produces: JSON_ONLY,
      operation: {
        id: 'listGoals',
        summary: 'Goals that this host offers',
        answers: {
          200: { description: 'goals', schema: { type: 'array', items: schemas.GOAL_INFO } },
        },
        problems: [],
      },
      handle: () => json(200, engine.goals()),
    },
    {
      method: 'GET',
      path: '/api/health',
      access: 'public',
      produces: JSON_ONLY,
      operation: {
        id: 'getHealth',
        summary: 'How the service is',
        description:
          'The rest but the status is told to callers who may see the runs of all tenants.',
        answers: {
          200: {
            description: 'it works, though it may be too busy for another run',
            schema: schemas.HEALTH,
          },
          503: { description: 'it shuts down, or cannot store anything', schema: schemas.HEALTH },
        },
        problems: [],
      },
      handle: async (call) => {
        const { status, problem } = await health.report()
        const facts = (await mayKnowAll(context, call))
          ? { version: VERSION, problem, runs: await counts() }
          : {}
        return json(status === 'ok' || status === 'busy' ? 200 : 503, { status, ...facts })
      },
    },
    {
      method: 'GET',
      path: '/api/openapi.json',
      access: 'public',
      produces: JSON_ONLY,
      operation: {
        id: 'getOpenApi',
        summary: 'This description',
        answers: { 200: { description: 'OpenAPI 3.1', schema: { type: 'object' } } },
        problems: [],
      },
      handle: () => {
        description ??= JSON.stringify(describeApi(all(), config.basePath, NAMED))
        return jsonText(200, description)
      },
    },
    {
      method: 'GET',
      path: '/api/asyncapi.json',
      access: 'public',
      produces: JSON_ONLY,
      operation: {
        id: 'getAsyncApi',
        summary: 'The description of the event streams',
        answers: { 200: { description: 'AsyncAPI 3.0', schema: { type: 'object' } } },
        problems: [],
      },
      handle: () => {
        streams ??= JSON.stringify(describeStreams(config.basePath))
        return jsonText(200, streams)
      },
    },
    ...(config.metrics && context.monitor !== null ? metricsRoutes(context.monitor) : []),
  ]
}

/** The page for Prometheus: a route only when the host wants it. */
function metricsRoutes(monitor: Monitor): readonly RouteDefinition[] {
  return [
    {
      method: 'GET',
      path: '/metrics',
      access: 'caller',
      produces: ['text/plain'],
      operation: {
        id: 'getMetrics',
        summary: 'Numbers for Prometheus',
        answers: {
          200: {
            description: 'its text format',
            schema: { type: 'string' },
            mediaType: METRICS_TYPE,
          },
        },
        problems: [],
      },
      handle: async ({ principal }) => {
        // They are numbers of all tenants.
        if ((principal?.tenant ?? null) !== null) throw forbiddenTenant()
        const headers = { 'Content-Type': METRICS_TYPE }
        return { status: 200, headers, body: await monitor.page() }
      },
    },
  ]
}

function forbiddenTenant(): ProblemError {
  const detail = 'metrics are numbers of all tenants; ask with a key of none'
  return new ProblemError(403, 'forbidden_tenant', detail)
}

/** Health is asked for by load balancers, which have no key: they learn the status and no more. */
async function mayKnowAll({ config }: RouteContext, { request }: Call): Promise<boolean> {
  if (config.authorize === null) return true
  try {
    const principal = await config.authorize(request)
    return principal !== null && (principal.tenant ?? null) === null
  } catch {
    return false
  }
}
