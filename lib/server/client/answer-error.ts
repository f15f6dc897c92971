import type { AsyncResponse } from '../../http/index.js'
import { RunServiceError, type Problem } from '../errors.js'

/** A response other than success, over HTTP or in place of a 101. */
export interface Answer {
  readonly status: number
  readonly type: string | null
  readonly retryAfter: string | null
  readonly requestId: string | null
  readonly content: Uint8Array
}

/** The error for a response other than success, whose content is read. */
export async function answerError(response: AsyncResponse): Promise<RunServiceError> {
  return errorOf({
    status: response.statusCode,
    type: response.headers.get('content-type'),
    retryAfter: response.headers.get('retry-after'),
    requestId: response.headers.get('x-request-id'),
    content: await response.read(),
  })
}

/** The error with the problem details of an answer, if it has any. */
export function errorOf({ status, type, retryAfter, requestId, content }: Answer): RunServiceError {
  const retryAfterMs =
    retryAfter !== null && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) * 1000 : null
  const problem = problemIn(type ?? '', new TextDecoder().decode(content))
  if (problem === null) {
    const detail =
      `the response is ${status} without problem details; check that baseUrl leads to the service`
    return new RunServiceError(status, 'unexpected_answer', detail, { retryAfterMs, requestId })
  }
  const { code, detail, errors = [], paths = [], quota = null, files = null } = problem
  const facts = { errors, paths, quota, files, retryAfterMs, requestId }
  return new RunServiceError(status, code, detail, facts)
}

function problemIn(type: string, text: string): Problem | null {
  if (!type.startsWith('application/problem+json')) return null
  try {
    const problem = JSON.parse(text) as Partial<Problem> | null
    if (typeof problem?.code !== 'string' || typeof problem.detail !== 'string') return null
    return problem as Problem
  } catch {
    return null
  }
}
