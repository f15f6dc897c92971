/** Files of a run's folder, as a checkpoint has them or as they are. @module */
import { WorkspaceError, type Caller, type FileContent, type FileList } from '../../agent/index.js'
import type { ServiceContext } from '../context.js'
import type { Parameter } from '../describe/operation.js'
import { FILE_LIST } from '../describe/workspace-schemas.js'
import { invalidField, ProblemError } from '../errors.js'
import { chooseType } from '../messages/accept.js'
import { matchesTag } from '../messages/etag.js'
import { attachment, decodeFilePath } from '../messages/file-path.js'
import { readText } from '../messages/query.js'
import { json, type Reply } from '../messages/reply.js'
import type { Call, RouteDefinition } from '../router.js'

const BYTES = 'application/octet-stream'

/** Headers of content that a run may have written: browsers must not show or run it. */
export const UNTRUSTED: Readonly<Record<string, string>> = {
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'Cache-Control': 'private, no-cache',
}

const AT: Parameter = {
  name: 'at',
  in: 'query',
  description: 'a checkpoint id, `start`, `newest` (the default), or `now`, the folder as it is',
  schema: { type: 'string' },
}

/** Creates the routes of files and folders. */
export function fileRoutes(context: ServiceContext): readonly RouteDefinition[] {
  return [listFolder(context), readFile(context)]
}

function listFolder(context: ServiceContext): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/files',
    operation: {
      id: 'listFiles',
      summary: "List a run's folder",
      parameters: [AT],
      answers: { 200: { description: 'its entries', schema: FILE_LIST } },
      problems: [404, 409, 410, 501],
    },
    handle: async (call) => {
      const { workspaces } = context.engine
      const at = readText(call.query, 'at')
      const list = workspaces.list.bind(workspaces, call.parameter, { at })
      return json(200, await context.limited(call, list))
    },
  }
}

function readFile(context: ServiceContext): RouteDefinition {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/files/{+path}',
    produces: [BYTES, 'application/json'],
    operation: {
      id: 'readFile',
      summary: "Read a file of a run's folder, or list a folder in it",
      description:
        'Slashes in the path are sent as they are. A file that holds secrets is refused unless ' +
        'the host lets the caller read files.',
      parameters: [
        AT,
        {
          name: 'If-None-Match',
          in: 'header',
          description: 'the ETag of the content that the caller has',
          schema: { type: 'string' },
        },
      ],
      answers: {
        200: [
          {
            description: 'the bytes of the file',
            schema: { type: 'string' },
            mediaType: BYTES,
            headers: { ETag: 'SHA-256 of the content', 'Content-Disposition': 'its name' },
          },
          { description: 'the entries of the folder', schema: FILE_LIST },
        ],
        304: { description: 'not modified (If-None-Match)' },
      },
      problems: [404, 409, 410, 501],
    },
    handle: async (call) => {
      const path = decodeFilePath(call.rest)
      const found = await context.limited(call, (caller) => find(context, call, path, caller))
      const isFolder = 'entries' in found
      chooseType(call.request.headers.accept, [isFolder ? 'application/json' : BYTES])
      return isFolder ? json(200, found) : contentReply(context, call, found)
    },
  }
}

/** What is at a path: only reading it tells. */
async function find(
  context: ServiceContext,
  { query, parameter, principal }: Call,
  path: string,
  caller: Caller,
): Promise<FileList | FileContent> {
  const { workspaces } = context.engine
  const at = readText(query, 'at')
  const raw = context.mayReadFiles(principal)
  try {
    return await workspaces.list(parameter, { path, at }, caller)
  } catch (error) {
    if (!isNoSuchPath(error)) throw error
  }
  try {
    return await workspaces.read(parameter, path, { at, raw }, caller)
  } catch (error) {
    if (!isNoSuchPath(error)) throw error
    if (error.code === 'ERR_AGENT_OUTSIDE_WORKSPACE') {
      throw invalidField('/path', 'leads outside the folder', 'path')
    }
    throw new ProblemError(404, 'file_not_found', error.message)
  }
}

/** Whether an error is about the path, and not about the whole folder. */
function isNoSuchPath(error: unknown): error is WorkspaceError {
  return error instanceof WorkspaceError && error.code !== 'ERR_AGENT_WORKSPACE_LOST'
}

function contentReply(
  { heavy }: ServiceContext,
  { request }: Call,
  { path, content, sha256 }: FileContent,
): Reply {
  const headers = { ...UNTRUSTED, ETag: `"${sha256}"` }
  if (matchesTag(request.headers['if-none-match'], headers.ETag)) return { status: 304, headers }
  const more = { 'Content-Type': BYTES, 'Content-Disposition': attachment(path) }
  return heavy.reply(request, { ...headers, ...more }, content)
}
