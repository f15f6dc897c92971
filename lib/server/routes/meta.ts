/** What the host offers, how the service is, and how it is spoken to. @module */
import { RESUME_SCHEMA, START_REQUEST_SCHEMA } from '../../agent/index.js'
import { describeStreams } from '../asyncapi.js'
import { json, jsonText } from '../http.js'
import { describeApi } from '../openapi.js'
import type { Call, Route } from '../router.js'
import * as schemas from '../schema.js'
import { VERSION } from '../version.js'
import { JSON_ONLY, type RouteContext } from './context.js'

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
export function metaRoutes(context: RouteContext, all: () => readonly Route[]): readonly Route[] {
  const { engine, config } = context
  let description: string | undefined
  let streams: string | undefined
  // A store that is closed already cannot count any more.
  const counts = (): Promise<object | undefined> =>
    engine.counts().catch((error: unknown) => {
      if (context.isDraining()) return undefined
      throw error
    })
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
        summary: 'Whether the service takes runs',
        description:
          'Version and numbers of runs are told to callers who may see the runs of all tenants.',
        answers: {
          200: { description: 'it does', schema: schemas.HEALTH },
          503: { description: 'it is shutting down', schema: schemas.HEALTH },
        },
        problems: [],
      },
      handle: async (call) => {
        const draining = context.isDraining()
        const status = draining ? 'draining' : 'ok'
        const facts = (await mayKnowAll(context, call))
          ? { version: VERSION, runs: await counts() }
          : {}
        return json(draining ? 503 : 200, { status, ...facts })
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
  ]
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
