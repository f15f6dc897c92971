import { addCredential, warn } from '../../internal/errors.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { EventKind } from '../../agent/index.js'
import { EVENT_KINDS } from '../describe/event-schemas.js'

/** A receiver of events. Its progress is stored under its `url`, so a new `url` starts afresh. */
export interface WebhookEndpoint {
  /** `https:`, or with `allowPrivate` also `http:`. */
  readonly url: string
  /** `whsec_` and base64 of 24 to 64 bytes; several during a key rotation. */
  readonly secret: string | readonly string[]
  /** Kinds of events to deliver. @defaultValue `run_end` and `human_check_required` */
  readonly kinds?: readonly EventKind[] | undefined
  /** Allow addresses of this machine and of private networks. @defaultValue false */
  readonly allowPrivate?: boolean | undefined
}

/** The option `webhooks` of `createRunService()`. */
export interface WebhookOptions {
  /** Folder for the progress of each endpoint. It must not lie inside a root. */
  readonly directory: string
  /** Each gets all wanted events, independently of the others. */
  readonly endpoints: readonly WebhookEndpoint[]
  /** Milliseconds before the first retry; doubles up to an hour. @defaultValue 1000 */
  readonly retryMs?: number | undefined
  /** Called after each failed attempt. @defaultValue a warning for the first and the last one */
  readonly onFailure?: ((failure: WebhookFailure) => void) | undefined
}

const OPTIONS: OptionKinds<WebhookOptions> = {
  directory: 'string! a folder for the progress of each endpoint',
  endpoints: 'array! { url, secret } for each receiver', retryMs: 'number', onFailure: 'function',
}
const ENDPOINT: OptionKinds<WebhookEndpoint> = {
  url: 'string! an https address', secret: 'any! whsec_ and base64 of 24 to 64 bytes',
  kinds: 'array', allowPrivate: 'boolean',
}

/** @throws TypeError that names an invalid option of `webhooks`. */
export function checkWebhooks(options: WebhookOptions): void {
  checkOptions(options, OPTIONS, 'webhooks')
  for (const [i, endpoint] of options.endpoints.entries()) {
    checkOptions(endpoint, ENDPOINT, `webhooks.endpoints[${i}]`)
  }
}

/** A failed attempt to deliver an event. */
export interface WebhookFailure {
  /** Without the query, which may contain a key. */
  readonly url: string
  readonly run_id: string
  readonly seq: number
  readonly attempts: number
  readonly problem: string
  /** True when the event will not be sent again. */
  readonly final: boolean
}

const DEFAULT_KINDS: readonly EventKind[] = ['run_end', 'human_check_required']

/** The address of an endpoint. @throws TypeError when it is not allowed. */
export function parseUrl({ url, allowPrivate = false }: WebhookEndpoint): URL {
  const parsed = URL.canParse(url) ? new URL(url) : null
  const good = allowPrivate ? ['https:', 'http:'] : ['https:']
  if (parsed !== null && good.includes(parsed.protocol)) {
    for (const secret of secretsOf(parsed)) addCredential(secret)
    return parsed
  }
  const hint = allowPrivate ? '' : '; http: needs allowPrivate'
  throw new TypeError(`webhooks: url must be an ${good.join(' or ')} address${hint}`)
}

/** Parts of an address that may be a secret: the password, and what nobody would write by hand. */
function secretsOf({ password, pathname, searchParams }: URL): readonly string[] {
  const parts = [...pathname.split('/'), ...searchParams.values()]
  const random = parts.filter((part) => /^(?=\D*\d)(?=[^a-z]*[a-z])[\w.~-]{16,}$/i.test(part))
  return password === '' ? random : [password, ...random]
}

/** The kinds that an endpoint wants. @throws TypeError for an unknown one. */
export function parseKinds({ kinds = DEFAULT_KINDS }: WebhookEndpoint): ReadonlySet<EventKind> {
  const wrong = kinds.find((kind) => !EVENT_KINDS.includes(kind))
  if (wrong === undefined && kinds.length > 0) return new Set(kinds)
  throw new TypeError(`webhooks: kinds must be some of ${EVENT_KINDS.join(', ')}`)
}

/** The default of `onFailure`. */
export function warnOfFailure(failure: WebhookFailure): void {
  const { url, run_id, seq, attempts, problem, final } = failure
  // One warning for the first failure, and one when the event is given up.
  if (attempts > 1 && !final) return
  const then = final ? 'given up' : 'retrying'
  // The path may hold a token.
  const { origin } = new URL(url)
  warn(`webhook ${origin}: event ${seq} of run ${run_id} was not accepted, ${then}: ${problem}`)
}
