/** What a run did to its folder: checkpoints, net changes, restore, apply, discard. @module */
import { APPLY_SCHEMA, RESTORE_SCHEMA } from '../../agent/index.js'
import type { ServiceContext } from '../context.js'
import type { Parameter } from '../describe/operation.js'
import { NO_FIELDS } from '../describe/schemas.js'
import {
  APPLY_RESULT,
  CHECK_FILES,
  CHECKPOINT,
  NET_CHANGES,
  RESTORE_RESULT,
} from '../describe/workspace-schemas.js'
import { attachment } from '../messages/file-path.js'
import { readChoice, readText } from '../messages/query.js'
import { json } from '../messages/reply.js'
import type { RouteDefinition } from '../router.js'
import { readNoFields, readRequest } from './calls.js'
import { UNTRUSTED } from './files.js'

const PATCH = 'text/x-diff'

/** One end of a range of changes. */
function end(name: 'from' | 'to', byDefault: string): Parameter {
  const text = 'a checkpoint id, `start`, `newest`, or `now`, the folder as it is'
  const description = `${text}; by default ${byDefault}`
  return { name, in: 'query', description, schema: { type: 'string' } }
}

const ONLY: Parameter = {
  name: 'only',
  in: 'query',
  description: 'without what the newest verdict does not cover, as an apply brings it',
  schema: { type: 'string', enum: ['delivered'] },
}

const FROM =
  '`start`; of a fork that took over changes which were not applied, where those began'

/** Creates the routes of checkpoints and of what is done with them. */
export function workspaceRoutes(context: ServiceContext): readonly RouteDefinition[] {
  return [
    listCheckpoints(context),
    listCheckFiles(context),
    readChanges(context),
    restore(context),
    apply(context),
    discard(context),
  ]
}

function listCheckpoints({ engine }: ServiceContext): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/checkpoints',
    operation: {
      id: 'listCheckpoints',
      summary: "List the checkpoints of a run's folder, oldest first",
      answers: {
        200: { description: 'the checkpoints', schema: { type: 'array', items: CHECKPOINT } },
      },
      problems: [404],
    },
    handle: async ({ parameter, caller }) =>
      json(200, await engine.workspaces.checkpoints(parameter, caller)),
  }
}

function listCheckFiles({ engine }: ServiceContext): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/check-files',
    operation: {
      id: 'listCheckFiles',
      summary: 'List the files that belong to the check of a run, each with the reason',
      answers: { 200: { description: 'the files', schema: CHECK_FILES } },
      problems: [404],
    },
    handle: async ({ parameter, caller }) => json(200, await engine.checkFiles(parameter, caller)),
  }
}

function readChanges(context: ServiceContext): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/changes',
    produces: ['application/json', PATCH],
    operation: {
      id: 'readChanges',
      summary: 'Read the net changes between two checkpoints',
      description:
        `As ${PATCH}: one patch with exact bytes for \`git apply\` and \`patch -p1\`, refused ` +
        'when files hold secrets, unless the host lets the caller read files. As JSON: with ' +
        'secrets redacted.',
      parameters: [end('from', FROM), end('to', '`newest`'), ONLY],
      answers: {
        200: [
          { description: 'the changes', schema: NET_CHANGES },
          { description: 'the patch', schema: { type: 'string' }, mediaType: PATCH },
        ],
      },
      problems: [404, 409, 410, 501],
    },
    handle: async (call) => {
      const { heavy, engine } = context
      const { workspaces } = engine
      const { request, query, parameter, principal, mediaType } = call
      const range = {
        from: readText(query, 'from'),
        to: readText(query, 'to'),
        only: readChoice(query, 'only', ['delivered']),
      }
      if (mediaType !== PATCH) {
        const read = workspaces.changes.bind(workspaces, parameter, range)
        return json(200, await context.limited(call, read))
      }
      const how = { ...range, raw: context.mayReadFiles(principal) }
      const read = workspaces.patch.bind(workspaces, parameter, how)
      const patch = await context.limited(call, read)
      const named = { 'Content-Disposition': attachment(`${parameter}.patch`) }
      return heavy.reply(request, { ...UNTRUSTED, 'Content-Type': PATCH, ...named }, patch)
    },
  }
}

function restore({ engine, config }: ServiceContext): RouteDefinition {
  return {
    method: 'POST',
    path: '/api/runs/{run_id}/restore',
    operation: {
      id: 'restoreRun',
      summary: "Give the run's folder the content of a checkpoint",
      description: 'While the run waits at a gate, or after its end.',
      body: { schema: RESTORE_SCHEMA },
      answers: { 200: { description: 'restored', schema: RESTORE_RESULT } },
      problems: [404, 409, 410, 501, 503, 507],
    },
    handle: async (call) => {
      const request = await readRequest(call, config)
      return json(200, await engine.workspaces.restore(call.parameter, request, call.caller))
    },
  }
}

function apply({ engine, config }: ServiceContext): RouteDefinition {
  return {
    method: 'POST',
    path: '/api/runs/{run_id}/apply',
    operation: {
      id: 'applyRun',
      summary: 'Bring the changes of an isolated run into its `cwd`',
      description: 'Three-way for each file. Without `force`, a conflict writes nothing.',
      body: { schema: APPLY_SCHEMA, optional: true },
      answers: { 200: { description: 'applied', schema: APPLY_RESULT } },
      problems: [404, 409, 410, 501, 503, 507],
    },
    handle: async (call) => {
      const request = await readRequest(call, config)
      return json(200, await engine.workspaces.apply(call.parameter, request, call.caller))
    },
  }
}

function discard({ engine, config }: ServiceContext): RouteDefinition {
  return {
    method: 'POST',
    path: '/api/runs/{run_id}/discard',
    operation: {
      id: 'discardRun',
      summary: 'Remove the copy in which an isolated run worked, with its changes',
      body: { schema: NO_FIELDS, optional: true },
      answers: { 204: { description: 'removed' } },
      problems: [404, 409, 501],
    },
    handle: async (call) => {
      await readNoFields(call, config)
      await engine.workspaces.discard(call.parameter, call.caller)
      return { status: 204 }
    },
  }
}
