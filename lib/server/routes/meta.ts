/** The service itself: models, goals, health, metrics and the API descriptions. @module */
import type { JsonSchema } from '../../agent/index.js'
import { authorized } from '../access/principal.js'
import type { ServiceContext } from '../context.js'
import { describeStreams } from '../describe/asyncapi.js'
import { AGENT_EVENT } from '../describe/event-schemas.js'
import { describeApi } from '../describe/openapi.js'
import { LEFT_OUT } from '../describe/fields.js'
import * as schemas from '../describe/schemas.js'
import * as workspace from '../describe/workspace-schemas.js'
import { ProblemError } from '../errors.js'
import { json, jsonText } from '../messages/reply.js'
import { countDamage, damageOf } from '../monitoring/damage.js'
import { Health } from '../monitoring/health.js'
import { METRICS_TYPE } from '../monitoring/metrics.js'
import type { Monitor } from '../monitoring/monitor.js'
import type { Call, Route, RouteDefinition } from '../router.js'
import { VERSION } from '../../internal/version.js'

/** Schemas of responses that get a name in the API description. */
const NAMED = {
  RunDetails: schemas.RUN_DETAILS,
  RunSummary: schemas.RUN_SUMMARY,
  Gate: schemas.GATE,
  ResumeResult: schemas.RESUME_RESULT,
  AgentEvent: AGENT_EVENT,
  Checkpoint: workspace.CHECKPOINT,
  LeftOut: LEFT_OUT,
  NetChanges: workspace.NET_CHANGES,
  FileList: workspace.FILE_LIST,
  RestoreResult: workspace.RESTORE_RESULT,
  ApplyResult: workspace.APPLY_RESULT,
  MessageResult: workspace.MESSAGE_RESULT,
  Model: schemas.MODEL_INFO,
  Goal: schemas.GOAL_INFO,
  Health: schemas.HEALTH,
  Problem: schemas.PROBLEM,
} as const

/** Creates the routes about the service itself. `all` returns every route, these included. */
export function metaRoutes(
  context: ServiceContext,
  all: () => readonly Route[],
): readonly RouteDefinition[] {
  const { engine, config, monitor } = context
  return [
    list('/api/models', 'listModels', 'models', schemas.MODEL_INFO, () => engine.models()),
    list('/api/goals', 'listGoals', 'goals', schemas.GOAL_INFO, () => engine.goals()),
    health(context),
    description('/api/openapi.json', 'getOpenApi', 'This description', 'OpenAPI 3.1', () =>
      describeApi(all(), config.basePath, NAMED),
    ),
    description(
      '/api/asyncapi.json',
      'getAsyncApi',
      'The description of the event streams',
      'AsyncAPI 3.1',
      () => describeStreams(config.basePath),
    ),
    ...(config.metrics && monitor !== null ? [metrics(monitor)] : []),
  ]
}

function list(
  path: string,
  id: string,
  what: string,
  items: JsonSchema,
  read: () => readonly unknown[],
): RouteDefinition {
  return {
    method: 'GET',
    path,
    operation: {
      id,
      summary: `List the ${what} that this host offers`,
      answers: { 200: { description: what, schema: { type: 'array', items } } },
      problems: [],
    },
    handle: () => json(200, read()),
  }
}

/** A document that never changes, encoded once. */
function description(
  path: string,
  id: string,
  summary: string,
  format: string,
  describe: () => object,
): RouteDefinition {
  let text: string | undefined
  return {
    method: 'GET',
    path,
    access: 'public',
    operation: {
      id,
      summary,
      answers: { 200: { description: format, schema: { type: 'object' } } },
      problems: [],
    },
    handle: () => jsonText(200, (text ??= JSON.stringify(describe()))),
  }
}

function health(context: ServiceContext): RouteDefinition {
  const { engine } = context
  const schema = schemas.HEALTH
  const service = new Health(context)
  // A closed or broken store cannot count any more; the status tells why.
  const counts = (): Promise<object | undefined> => engine.counts().catch(() => undefined)
  return {
    method: 'GET',
    path: '/api/health',
    access: 'public',
    operation: {
      id: 'getHealth',
      summary: 'Health of the service',
      description:
        'Only callers who may see the runs of all tenants get more than the status, and whether ' +
        'there is a demo.',
      answers: {
        200: {
          description: 'it works, though it may be too busy for another run, or data is damaged',
          schema,
        },
        503: { description: 'it is shutting down, or cannot store anything', schema },
      },
      problems: [],
    },
    handle: async (call) => {
      const { status, problem } = await service.report()
      const damaged = countDamage(damageOf(engine))
      const facts = (await maySeeAll(context, call))
        ? {
            version: VERSION,
            problem,
            ...(damaged.runs + damaged.files > 0 && { damaged }),
            runs: await counts(),
          }
        : {}
      const works = status !== 'failing' && status !== 'draining'
      const demo = context.config.demo !== null && { demo: true }
      return json(works ? 200 : 503, { status, ...facts, ...demo })
    },
  }
}

function metrics(monitor: Monitor): RouteDefinition {
  return {
    method: 'GET',
    path: '/metrics',
    produces: ['text/plain'],
    operation: {
      id: 'getMetrics',
      summary: 'Metrics for Prometheus',
      answers: {
        200: {
          description: 'the Prometheus text format',
          schema: { type: 'string' },
          mediaType: METRICS_TYPE,
        },
      },
      problems: [],
    },
    handle: async ({ principal }) => {
      if ((principal?.tenant ?? null) !== null) throw forbiddenTenant()
      const headers = { 'Content-Type': METRICS_TYPE }
      return { status: 200, headers, body: await monitor.page() }
    },
  }
}

function forbiddenTenant(): ProblemError {
  const detail = 'metrics cover all tenants; use a key without a tenant'
  return new ProblemError(403, 'forbidden_tenant', detail)
}

/** Load balancers, which have no key, may ask for the health; they get no facts. */
async function maySeeAll({ config }: ServiceContext, { request }: Call): Promise<boolean> {
  if (config.authorize === null) return true
  try {
    return authorized(await config.authorize(request)).tenant === null
  } catch {
    return false
  }
}
