/**
 * Serves the dashboard: a handful of files, read once and cached, and a module that is made of the
 * table of events. They hold no data, so they need no key; the page asks the user for one when the
 * API requires it.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { EVENT_KINDS, EVENTS } from '../describe/event-schemas.js'
import { ProblemError } from '../errors.js'
import { matchesTag } from '../messages/etag.js'
import type { HttpRequest, Reply } from '../messages/reply.js'
import type { RouteDefinition } from '../router.js'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Everything comes from this origin, nothing is inline, and no page may frame this one. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Images of runs are fetched with the key: see `images.js`.
  "img-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

interface StaticFile {
  readonly content: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** The module `event-kinds.js`, whose types are in `event-kinds.d.ts`. */
function eventModule(): string {
  const table = JSON.stringify(EVENTS, ['label', 'refresh', ...EVENT_KINDS])
  return `export const EVENTS = ${table}\n`
}

async function loadFiles(): Promise<ReadonlyMap<string, StaticFile>> {
  const { PAGE_FILES } = await import('./files.js')
  const files = new Map<string, StaticFile>()
  const all = { ...PAGE_FILES, 'event-kinds.js': eventModule() }
  for (const [name, text] of Object.entries(all)) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const content = Buffer.from(text)
    const tag = createHash('sha256').update(content).digest('base64url').slice(0, 22)
    files.set(name, {
      content,
      headers: {
        'Content-Type': type,
        ETag: `"${tag}"`,
        // The browser caches the file but revalidates it, so a new version shows at once.
        'Cache-Control': 'no-cache',
        'Content-Security-Policy': CONTENT_SECURITY_POLICY,
        'Cross-Origin-Opener-Policy': 'same-origin',
        'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
      },
    })
  }
  return files
}

/** Creates the routes of the page and its files. */
export function dashboardRoutes(): readonly RouteDefinition[] {
  let files: Promise<ReadonlyMap<string, StaticFile>> | undefined
  const serve = async (request: HttpRequest, name: string): Promise<Reply> => {
    // A failure is not cached: the next request tries again.
    files ??= loadFiles().catch((error: unknown) => {
      files = undefined
      throw error
    })
    const file = (await files).get(name)
    if (file === undefined)
      throw new ProblemError(404, 'not_found', 'the dashboard has no such file')
    const { content, headers } = file
    if (matchesTag(request.headers['if-none-match'], headers['ETag']!))
      return { status: 304, headers }
    return { status: 200, headers, body: content }
  }
  return [
    {
      method: 'GET',
      path: '/',
      access: 'public',
      produces: [],
      operation: null,
      handle: ({ request }) => serve(request, 'index.html'),
    },
    {
      method: 'GET',
      path: '/runwright/{file}',
      access: 'public',
      produces: [],
      operation: null,
      handle: ({ request, parameter }) => serve(request, parameter),
    },
  ]
}
