/** What a form needs before a run is started: folders, and what a request would begin. @module */
import { START_REQUEST_SCHEMA } from '../../agent/index.js'
import type { ServiceContext } from '../context.js'
import { FOLDER_OFFER, RESOLVED_REQUEST } from '../describe/schemas.js'
import { readValue } from '../messages/query.js'
import { json } from '../messages/reply.js'
import type { RouteDefinition } from '../router.js'
import { readRequest } from './calls.js'

export function offerRoutes(context: ServiceContext): readonly RouteDefinition[] {
  const { engine, config } = context
  return [
    {
      method: 'GET',
      path: '/api/folders',
      operation: {
        id: 'listFolders',
        summary: 'List folders in which the caller may start runs, one level at a time',
        parameters: [
          {
            name: 'path',
            in: 'query',
            description: 'the folder whose folders are listed; the roots of the caller without it',
            schema: { type: 'string', minLength: 1 },
          },
        ],
        answers: { 200: { description: 'the folders, by name', schema: FOLDER_OFFER } },
        problems: [409, 422],
      },
      handle: async (call) => {
        const path = readValue(call.query, 'path')
        const read = engine.offers.folders.bind(engine.offers, path)
        return json(200, await context.limited(call, read))
      },
    },
    {
      method: 'POST',
      path: '/api/resolve',
      operation: {
        id: 'resolveRequest',
        summary: 'Tell what a request would start',
        description: 'Checks it as a start does; runs nothing and stores nothing.',
        body: { schema: START_REQUEST_SCHEMA },
        answers: { 200: { description: 'what would be started', schema: RESOLVED_REQUEST } },
        problems: [409, 422],
      },
      handle: async (call) => {
        const request = await readRequest(call, config)
        const resolve = engine.offers.resolve.bind(engine.offers, request)
        return json(200, await context.limited(call, resolve))
      },
    },
  ]
}
