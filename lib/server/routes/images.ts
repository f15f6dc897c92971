/** Images of a run: those of its request, and those that tools have returned. @module */
import type { ServiceContext } from '../context.js'
import { ProblemError } from '../errors.js'
import { chooseType } from '../messages/accept.js'
import { readInteger } from '../messages/query.js'
import type { RouteDefinition } from '../router.js'
import { UNTRUSTED } from './files.js'

/** What images are by their bytes, as they were checked when they came: no SVG. */
const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
/** The last index of an image of one event. */
const LAST = 7

/** Creates the route of images. */
export function imageRoutes(context: ServiceContext): readonly RouteDefinition[] {
  const { engine, heavy } = context
  return [
    {
      method: 'GET',
      path: '/api/runs/{run_id}/images',
      produces: TYPES,
      operation: {
        id: 'readImage',
        summary: 'Read an image of the request or of a result',
        parameters: [
          {
            name: 'event',
            in: 'query',
            description: '`seq` of a `tool_result`, or of `run_created` for those of the request',
            schema: { type: 'integer', minimum: 1, default: 1 },
          },
          {
            name: 'index',
            in: 'query',
            description: 'counts the images of the event from 0',
            schema: { type: 'integer', minimum: 0, maximum: LAST, default: 0 },
          },
        ],
        answers: {
          200: TYPES.map((mediaType) => ({
            description: 'the bytes of the image',
            schema: { type: 'string' as const },
            mediaType,
          })),
        },
        problems: [404, 422],
      },
      handle: async (call) => {
        const { request, query, parameter } = call
        const event = readInteger(query, 'event', 1, Number.MAX_SAFE_INTEGER) ?? 1
        const index = readInteger(query, 'index', 0, LAST) ?? 0
        const read = engine.images.bind(engine, parameter, event)
        const images = await context.limited(call, read)
        const image = images[index]
        if (image === undefined) {
          const detail = `event ${event} has no image ${index}`
          throw new ProblemError(404, 'image_not_found', detail)
        }
        chooseType(request.headers.accept, [image.media_type])
        const headers = { ...UNTRUSTED, 'Content-Type': image.media_type }
        return heavy.reply(request, headers, Buffer.from(image.data, 'base64'))
      },
    },
  ]
}
