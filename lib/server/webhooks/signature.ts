import { createHmac } from 'node:crypto'
import { addCredential } from '../../internal/credentials.js'

/** Bytes of a secret (Standard Webhooks). */
const MIN_SECRET = 24
const MAX_SECRET = 64

/**
 * Parses `whsec_` followed by the base64 of 24 to 64 bytes, and has it masked in whatever is
 * written.
 *
 * @throws TypeError, which does not quote the secret.
 */
export function parseSecret(secret: unknown): Buffer {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(secret)) ?? []
  const bytes = Buffer.from(encoded ?? '', 'base64')
  if (encoded !== undefined && bytes.length >= MIN_SECRET && bytes.length <= MAX_SECRET) {
    addCredential(encoded)
    return bytes
  }
  throw new TypeError(
    `webhooks: a secret must be whsec_ and base64 of ${MIN_SECRET} to ${MAX_SECRET} bytes`,
  )
}

/** The headers of a delivery (Standard Webhooks): id, time, and a signature for each secret. */
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
