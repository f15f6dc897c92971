/**
 * The description of the REST API (OpenAPI 3.1), built from the route table and the schemas that
 * validate requests.
 *
 * @module
 */
import type { JsonSchema } from '../../agent/index.js'
import { REQUEST_ID } from '../messages/request-id.js'
import type { Route } from '../router.js'
import { VERSION } from '../../internal/version.js'
import type { Answer, Operation, Parameter } from './operation.js'
import { PROBLEM } from './schemas.js'

/** Problem statuses of any call, and those of all calls but public ones. */
const COMMON_PROBLEMS = [403, 406, 500]
const CALLER_PROBLEMS = [401, 422, 429, 503]

const REQUEST_ID_MEANING =
  'The id of the request: that of its own header X-Request-Id, if it has 1 to 128 letters, ' +
  'digits and ._~+/=:@-, or else a new one. The log of the service names it.'

const FILE_PATH =
  'One or more segments with slashes between them. A byte of a name that is not UTF-8 is sent as ' +
  'its percent-encoding.'

/**
 * Returns the OpenAPI document. Schemas in `named` become components and are referenced.
 *
 * Those of requests stand in their operations: a field with a default is optional in a request, but
 * generators of clients cannot know that of a component, and take it for always present.
 */
export function describeApi(
  routes: readonly Route[],
  basePath: string,
  named: Readonly<Record<string, JsonSchema>>,
): object {
  const schemas = new Schemas(named)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    if (route.operation === null) continue
    const path = route.path.replace('{+', '{')
    const item = (paths[path] ??= pathParameters(route.path))
    item[route.method.toLowerCase()] = describeRoute(route, route.operation, schemas)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'runwright run service',
      version: VERSION,
      description: 'Starts goal-driven agent runs, reports on them, and answers their gates.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    // No key is needed when the host has no `authorize`.
    security: [{}, { bearer: [] }],
    paths,
    components: {
      schemas: schemas.components(),
      headers: {
        RequestId: { description: REQUEST_ID_MEANING, schema: { type: 'string', maxLength: 128 } },
      },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  }
}

function pathParameters(path: string): Record<string, unknown> {
  const parameters = [...path.matchAll(/\{(\+?)(\w+)\}/g)].map(([, plus, name]) => ({
    name,
    in: 'path',
    required: true,
    ...(plus === ''
      ? { schema: { type: 'string', format: 'uuid' } }
      : { description: FILE_PATH, schema: { type: 'string' } }),
  }))
  return parameters.length === 0 ? {} : { parameters }
}

function describeRoute(route: Route, operation: Operation, schemas: Schemas): object {
  const { id, summary, description, parameters = [], body, answers, problems } = operation
  const statuses = route.access === 'public' ? [] : CALLER_PROBLEMS
  const bodyProblems = body === undefined ? [] : [400, 413, 415, 422]
  const problemStatuses = new Set([...COMMON_PROBLEMS, ...statuses, ...bodyProblems, ...problems])
  const responses: Record<string, unknown> = {}
  for (const [status, answer] of Object.entries(answers)) {
    responses[status] = describeAnswer([answer].flat() as readonly Answer[], schemas)
  }
  for (const status of [...problemStatuses].sort()) {
    responses[status] ??= describeAnswer(
      [{ description: 'problem details', schema: PROBLEM, mediaType: 'application/problem+json' }],
      schemas,
    )
  }
  return {
    operationId: id,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(route.access === 'public' ? { security: [{}] } : {}),
    ...(parameters.length === 0 ? {} : { parameters: parameters.map(describeParameter) }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.optional !== true,
            content: { 'application/json': { schema: schemas.refer(body.schema) } },
          },
        }),
    responses,
  }
}

function describeParameter(parameter: Parameter): object {
  const { name, in: where, description, schema, repeated, prefix } = parameter
  const full = repeated === true ? { type: 'array', items: schema } : schema
  // Exploded, the names in an object are the names of parameters.
  const named = { propertyNames: { pattern: `^${name}\\.` }, additionalProperties: schema }
  return {
    name,
    in: where,
    description,
    schema: prefix === true ? { type: 'object', ...named } : full,
    ...(repeated === true || prefix === true ? { style: 'form', explode: true } : {}),
  }
}

function describeAnswer(answers: readonly Answer[], schemas: Schemas): object {
  const content: Record<string, unknown> = {}
  for (const { schema, mediaType = 'application/json' } of answers) {
    if (schema !== undefined) content[mediaType] = { schema: schemas.refer(schema) }
  }
  const headers = Object.assign({}, ...answers.map((answer) => answer.headers ?? {})) as Record<
    string,
    string
  >
  const described = Object.fromEntries(
    Object.entries(headers).map(([name, meaning]) => [
      name,
      { description: meaning, schema: { type: 'string' } },
    ]),
  )
  return {
    description: answers.map(({ description }) => description).join('; or '),
    headers: { [REQUEST_ID]: { $ref: '#/components/headers/RequestId' }, ...described },
    ...(Object.keys(content).length === 0 ? {} : { content }),
  }
}

/** Replaces named schemas by references, at any depth. */
class Schemas {
  readonly #names: ReadonlyMap<JsonSchema, string>

  constructor(named: Readonly<Record<string, JsonSchema>>) {
    this.#names = new Map(Object.entries(named).map(([name, schema]) => [schema, name]))
  }

  refer(schema: JsonSchema | boolean): unknown {
    if (typeof schema === 'boolean') return schema
    const name = this.#names.get(schema)
    return name === undefined ? this.#expand(schema) : { $ref: `#/components/schemas/${name}` }
  }

  components(): object {
    return Object.fromEntries(
      [...this.#names].map(([schema, name]) => [name, this.#expand(schema)]),
    )
  }

  #expand(schema: JsonSchema): unknown {
    const { properties, items, anyOf, additionalProperties, ...plain } = schema
    return {
      ...plain,
      ...(anyOf === undefined ? {} : { anyOf: anyOf.map((one) => this.refer(one)) }),
      ...(items === undefined ? {} : { items: this.refer(items) }),
      ...(properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(
              Object.entries(properties).map(([name, one]) => [name, this.refer(one)]),
            ),
          }),
      ...(additionalProperties === undefined
        ? {}
        : { additionalProperties: this.refer(additionalProperties) }),
    }
  }
}
