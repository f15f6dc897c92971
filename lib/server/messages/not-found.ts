import { ProblemError } from '../errors.js'
import type { Router } from '../router.js'
import type { Located } from './request-target.js'

/** A prefix that a program would use for a mount; nothing else of a path is repeated. */
const PREFIX = /^(\/[\w.~-]{1,64}){1,4}$/

/**
 * The 404 for what no route serves. Where the prefix of the service was cut off, or is unknown to
 * it, the detail names `basePath`.
 */
export function notFound(request: Located, basePath: string, router: Router): ProblemError {
  const hint = mountHint(request, basePath, router) ?? 'see /api/openapi.json'
  return new ProblemError(404, 'not_found', `there is no such resource; ${hint}`)
}

function mountHint({ url = '' }: Located, basePath: string, router: Router): string | null {
  const [path = ''] = url.split(/[?#]/, 1)
  if (basePath !== '' && router.match(path) !== null) {
    return (
      `the service has the basePath "${basePath}", which this path lacks: ` +
      'call it with that prefix, and let no proxy or router cut it off'
    )
  }
  const at = path.lastIndexOf('/api/')
  const prefix = path.slice(0, at)
  const isOther = at > 0 && prefix !== basePath && PREFIX.test(prefix)
  if (!isOther || router.match(path.slice(at)) === null) return null
  const own = basePath === '' ? 'no basePath' : `the basePath "${basePath}"`
  return `the service has ${own}; mounted at ${prefix}, it needs the option basePath: '${prefix}'`
}
