import assert from 'node:assert/strict'
import { checkSchema, type JsonSchema } from 'runwright/agent'
import { describeStreams } from '../../lib/server/describe/asyncapi.js'
import type { Answer } from './open-service.js'

interface Content {
  readonly [mediaType: string]: { readonly schema: unknown }
}

/** One method of one path. */
export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: {
    readonly [status: string]: {
      readonly description: string
      readonly content?: Content
      readonly headers?: Readonly<Record<string, unknown>>
    }
  }
}

/** The parts of an OpenAPI document that the tests read. */
export interface ApiDescription {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: {
    readonly [path: string]: { readonly [method: string]: Operation } & {
      readonly parameters?: readonly { readonly name: string }[]
    }
  }
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}

/** Replaces each reference in a schema by its target. */
export function resolveSchema(schema: unknown, api: ApiDescription): JsonSchema {
  if (Array.isArray(schema)) return schema.map((one) => resolveSchema(one, api)) as JsonSchema
  if (typeof schema !== 'object' || schema === null) return schema as JsonSchema
  const reference = (schema as { $ref?: string }).$ref
  if (typeof reference === 'string') {
    const name = reference.replace('#/components/schemas/', '')
    assert.ok(Object.hasOwn(api.components.schemas, name), `${reference} is not there`)
    return resolveSchema(api.components.schemas[name], api)
  }
  const entries = Object.entries(schema).map(([name, value]) => [name, resolveSchema(value, api)])
  return Object.fromEntries(entries) as JsonSchema
}

/** The part of an AsyncAPI document that the tests read. */
export interface StreamDescription {
  readonly asyncapi: string
  readonly servers: Readonly<Record<string, { readonly pathname?: string }>>
  readonly channels: Readonly<
    Record<
      string,
      { readonly address: string; readonly messages: Readonly<Record<string, unknown>> }
    >
  >
  readonly components: {
    readonly messages: Readonly<Record<string, unknown>>
    readonly schemas: Readonly<Record<string, JsonSchema>>
  }
}

const streams = describeStreams('') as StreamDescription

/** Fails when a message of a stream differs from the description of the streams. */
export function assertMessageDescribed(message: unknown): void {
  const { kind, payload } = message as { kind: string; payload: object }
  const schema = streams.components.schemas[kind]
  assert.ok(schema !== undefined, `${kind} is not described`)
  assert.deepEqual(checkSchema(schema, message), [], JSON.stringify(message))
  const described = schema.properties?.['payload']
  assert.ok(typeof described === 'object')
  const known = Object.keys(described.properties ?? {})
  const unknown = Object.keys(payload).filter((name) => !known.includes(name))
  assert.deepEqual(unknown, [], `${kind} has fields that are not described`)
}

/** Fails when a response differs from the API description of its path, method and status. */
export function assertDescribed(
  api: ApiDescription,
  method: string,
  path: string,
  answer: Answer,
): void {
  const operation = operationOf(api, method, path)
  if (operation === undefined) return
  const where = `${method} ${path} ${answer.status}`
  const described = operation.responses[answer.status]
  // Every other status, 405 included, must be described for the operation.
  assert.ok(described !== undefined, `${where} is not described`)
  assert.match(String(answer.headers['x-request-id']), /^[\w.~+/=:@-]{1,128}$/, where)
  if (method === 'HEAD' || answer.text === '') return
  const type = String(answer.headers['content-type'])
  const schema = described.content?.[type]?.schema
  assert.ok(schema !== undefined, `${where} with ${type} is not described`)
  if (!type.endsWith('json')) return
  assert.deepEqual(
    checkSchema(resolveSchema(schema, api), answer.json),
    [],
    `${where}: ${answer.text}`,
  )
  if (operation.operationId === 'readEvents' && answer.status === 200) {
    for (const event of answer.json) assertMessageDescribed(event)
  }
  for (const name of ['location', 'link']) {
    const told = Object.keys(described.headers ?? {}).some(
      (header) => header.toLowerCase() === name,
    )
    if (answer.headers[name] !== undefined) assert.ok(told, `${where}: ${name} is not described`)
  }
}

function operationOf(api: ApiDescription, method: string, path: string): Operation | undefined {
  const base = api.servers[0]!.url === '/' ? '' : api.servers[0]!.url
  const sent = path.replace(/\?.*$/s, '')
  for (const [pattern, item] of Object.entries(api.paths)) {
    const own = pattern.replace('{run_id}', '[^/]+').replace('{path}', '.+')
    const matcher = new RegExp(`^${base}${own}$`)
    if (matcher.test(sent)) return item[method === 'HEAD' ? 'get' : method.toLowerCase()]
  }
  return undefined
}
