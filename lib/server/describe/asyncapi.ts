/**
 * The description of the event streams (AsyncAPI 3.1), built from the schemas of the messages.
 *
 * @module
 */
import type { EventKind, JsonSchema } from '../../agent/index.js'
import { STREAM_PROTOCOL } from '../access/auth.js'
import { STREAM_PARAMETERS } from './stream-parameters.js'
import { VERSION } from '../../internal/version.js'
import { EVENT_KINDS, EVENT_SCHEMAS, EVENTS, MODEL_DELTA } from './event-schemas.js'

const RUN_ID = { run_id: { description: 'UUID of the run, in lower case' } }

const MESSAGES: readonly (EventKind | 'model_delta')[] = [...EVENT_KINDS, 'model_delta']

/** The document served at `/api/asyncapi.json`. */
export function describeStreams(basePath: string): object {
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'runwright run events',
      version: VERSION,
      description:
        'The event log of a run, from any position on and then live. Each event of the log is ' +
        'sent once, in order and without gaps, after it has become durable. After run_end, the ' +
        "log has only what became of the run's files later: checkpoint, files_changing, " +
        'files_changed and changes_decided. A stream ends with the log of an ended run.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    servers: { websocket: describeServer('ws', basePath), http: describeServer('http', basePath) },
    channels: {
      socket: describeChannel('/api/ws/{run_id}', 'websocket', {
        title: 'WebSocket',
        description:
          `One event in each text message. Subprotocol ${STREAM_PROTOCOL}. A refused reader gets ` +
          'an HTTP response with problem details in place of the 101, with the code run_damaged ' +
          'when the log is damaged. Close codes: 1000 at the end of an ended run, 1001 the ' +
          'service is shutting down, 1011 the log could not be read, 1013 the reader does not ' +
          'read, 4404 the run was deleted. Messages from the client are ignored.',
        bindings: {
          ws: { method: 'GET', query: queryOf(STREAM_PARAMETERS), bindingVersion: '0.1.0' },
        },
      }),
      eventStream: describeChannel('/api/runs/{run_id}/events', 'http', {
        title: 'Server-sent events',
        description:
          'With `Accept: text/event-stream`: one event in each `data`, its seq as `id`. ' +
          'Last-Event-ID takes precedence over `after`. 204 means that all events were read.',
      }),
    },
    operations: {
      sendToSocket: describeOperation('socket', 'Events of a run over WebSocket'),
      sendToEventStream: {
        ...describeOperation('eventStream', 'Events of a run over HTTP'),
        bindings: {
          http: { method: 'GET', query: queryOf(STREAM_PARAMETERS), bindingVersion: '0.3.0' },
        },
      },
    },
    components: {
      messages: Object.fromEntries(MESSAGES.map((name) => [name, describeMessage(name)])),
      schemas: { ...EVENT_SCHEMAS, model_delta: MODEL_DELTA },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  }
}

function describeServer(protocol: string, basePath: string): object {
  return {
    host: '{host}',
    protocol,
    ...(basePath === '' ? {} : { pathname: basePath }),
    description: 'Where the host mounts the service.',
    variables: { host: { default: 'localhost:8000', description: 'name and port of the host' } },
    security: [{ $ref: '#/components/securitySchemes/bearer' }],
  }
}

function describeChannel(address: string, server: string, more: object): object {
  return {
    address,
    ...more,
    servers: [{ $ref: `#/servers/${server}` }],
    parameters: RUN_ID,
    messages: Object.fromEntries(
      MESSAGES.map((name) => [name, { $ref: `#/components/messages/${name}` }]),
    ),
  }
}

function describeOperation(channel: string, summary: string): object {
  return {
    action: 'send',
    channel: { $ref: `#/channels/${channel}` },
    summary,
    messages: MESSAGES.map((name) => ({ $ref: `#/channels/${channel}/messages/${name}` })),
  }
}

function describeMessage(name: EventKind | 'model_delta'): object {
  const summary =
    name === 'model_delta'
      ? 'Text that the model is generating; sent with deltas=1 only, and not stored'
      : EVENTS[name].meaning
  return {
    name,
    title: name,
    summary,
    contentType: 'application/json',
    payload: { $ref: `#/components/schemas/${name}` },
  }
}

function queryOf(parameters: typeof STREAM_PARAMETERS): JsonSchema {
  const properties = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, description, schema }) => [name, { ...schema, description }])
  return {
    type: 'object',
    properties: Object.fromEntries(properties) as Record<string, JsonSchema>,
  }
}
