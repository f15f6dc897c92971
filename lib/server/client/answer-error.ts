import type { AsyncResponse } from '../../http/index.js'
import { RunServiceError, type Problem } from '../errors.js'

/** The error for a response other than success, whose content is read. */
export async function answerError(response: AsyncResponse): Promise<RunServiceError> {
  const text = new TextDecoder().decode(await response.read())
  const retryAfter = response.headers.get('retry-after')
  const retryAfterMs =
    retryAfter !== null && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) * 1000 : null
  const problem = problemIn(response.headers.get('content-type') ?? '', text)
  if (problem === null) {
    const detail =
      `the response is ${response.statusCode} without problem details; ` +
      'check that baseUrl leads to the service'
    return new RunServiceError(response.statusCode, 'unexpected_answer', detail, { retryAfterMs })
  }
  const { code, detail, errors = [] } = problem
  return new RunServiceError(response.statusCode, code, detail, { errors, retryAfterMs })
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
