import { createHmac } from 'node:crypto'

/** A secret's octets at least and at most, as the convention has it. */
const MIN_SECRET = 24
const MAX_SECRET = 64

/**
 * Reads `whsec_` and base64 of 24 to 64 octets.
 *
 * @throws TypeError that does not quote it.
 */
export function parseSecret(secret: unknown): Buffer {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(secret)) ?? []
  const octets = Buffer.from(encoded ?? '', 'base64')
  if (octets.length >= MIN_SECRET && octets.length <= MAX_SECRET) return octets
  throw new TypeError(
    `webhooks: a secret must be whsec_ and base64 of ${MIN_SECRET} to ${MAX_SECRET} octets`,
  )
}

/** The headers of one delivery (Standard Webhooks): id, time and a signature by each secret. */
export function signatureHeaders(
  secrets: readonly Buffer[],
  id: string,
  seconds: number,
  body: string,
): Record<string, string> {
  const signed = `${id}.${seconds}.${body}`
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`,
  )
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signatures.join(' '),
  }
}
