import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { AnyClient } from './both-clients.js'

const certs = fileURLToPath(new URL('../fixtures/http/certs/', import.meta.url))
export const pem = (name: string): string => readFileSync(join(certs, `${name}.pem`), 'utf8')
export const verify: { readonly ca: string[] } = { ca: [pem('ca'), pem('other')] }

/** By server: `server` has a certificate for 127.0.0.1, `other` one for other.test only. */
export const ORIGINS = { plain: '', plain2: '', server: '', server2: '', other: '', other2: '' }
export type Server = keyof typeof ORIGINS

interface Received {
  readonly server: Server
  readonly path: string
  readonly headers: Record<string, string | undefined>
  readonly body: string
  readonly certificate: string | null
}

let worker: Worker
before(async () => {
  worker = new Worker(new URL('../fixtures/http/origins-worker.mjs', import.meta.url), {
    execArgv: [],
  })
  const [ports] = (await once(worker, 'message')) as [Record<Server, number>]
  for (const name of Object.keys(ORIGINS) as Server[]) {
    ORIGINS[name] = `${name.startsWith('plain') ? 'http' : 'https'}://127.0.0.1:${ports[name]}`
  }
})
after(async () => {
  worker.postMessage('close')
  await once(worker, 'exit')
})

export type Hop = readonly [status: number, to: Server]

/** The URL at `from` that redirects along `hops`. */
export function through(from: Server, hops: readonly Hop[]): string {
  const via = JSON.stringify(hops.map(([status, to]) => [status, ORIGINS[to]]))
  return `${ORIGINS[from]}/hop?via=${encodeURIComponent(via)}`
}

/** What the servers have received since the last call. */
export async function received(client: AnyClient): Promise<Received[]> {
  return (await client.get(`${ORIGINS.plain}/log`, { headers: null, auth: null })).json()
}

export const SECRET_NAMES: readonly string[] = [
  'Authorization',
  'Proxy-Authorization',
  'Cookie',
  'X-Api-Key',
  'Api-Key',
  'apikey',
  'X-Goog-Api-Key',
  'X-Auth-Token',
  'X-Amz-Security-Token',
  'X-CSRF-Token',
  'Private-Token',
  'X-Vault-Token',
  'X-Access-Token',
  'Ocp-Apim-Subscription-Key',
  'X-RapidAPI-Key',
  'CF-Access-Client-Secret',
  'X-Session-Id',
  'X-Password',
  'x_auth_token',
  'DPoP',
  'DPoP-Nonce',
  'X-JWT-Assertion',
  'Cf-Access-Jwt-Assertion',
  'X-Goog-IAP-JWT-Assertion',
  'Authentication',
  'X-Serverless-Authorization',
  'X-OAuth',
  'X-Signature',
  'Signature-Input',
  'X-Amz-Signature',
  'X-Hub-Signature-256',
  'X-Shopify-Hmac-Sha256',
  'X-Sign',
  'X-Sig',
  'X-Forwarded-Client-Cert',
  'Client-Cert-Chain',
  'X-ARR-ClientCert',
  'X-Client-Certificate',
  'X-SessionId',
  'X-SID',
  'PHPSession',
  'X-AccessToken',
  'X-CSRFToken',
  'X-AuthToken',
  'X-AccessKey',
  'X-AppKey',
  'X-WP-Nonce',
  'X-Bearer',
  'X-GitHub-OTP',
  'X-Amzn-Oidc-Data',
  'SAML-Assertion',
  'Macaroons',
  'X-Ticket',
  'X-Pass',
  'X-Pwd',
  'X-Passcode',
  'X-UserPassword',
  'X-ClientSecret',
]
