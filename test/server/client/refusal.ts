import assert from 'node:assert/strict'
import { RunServiceError } from 'runwright/server'

/** The error of a refused call. */
export async function refusal(call: Promise<unknown>): Promise<RunServiceError> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof RunServiceError, String(error))
  return error
}
