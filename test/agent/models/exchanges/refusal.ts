/** Refusals in the formats of the providers. */
import type { ModelErrorCode } from 'runwright/agent'
import type { ErrorFacts, Exchange, Refused } from './table.js'

/** A refusal; with `words`, a run that ends with it repeats these words of the provider. */
export interface Refusal extends Exchange {
  readonly fails: ErrorFacts & { readonly code: ModelErrorCode }
  readonly words?: string | RegExp
}

const CODES = {
  quota: 'ERR_AGENT_MODEL_QUOTA',
  rate: 'ERR_AGENT_MODEL_RATE_LIMIT',
  auth: 'ERR_AGENT_MODEL_AUTH',
  context: 'ERR_AGENT_MODEL_CONTEXT',
  filter: 'ERR_AGENT_MODEL_FILTER',
  other: 'ERR_AGENT_MODEL',
  mistake: 'ERR_AGENT_MODEL',
} as const
export type Kind = keyof typeof CODES
/** When to try again: at once, or after so many milliseconds. Nothing for never. */
export type Retry = 'again' | number

/** A refusal, and what kind of error it is. */
export function refused(
  server: string,
  status: number | null,
  body: unknown,
  kind: Kind,
  retry?: Retry,
  more: Pick<Refusal, 'words'> & Pick<Refused, 'headers'> = {},
): Refusal {
  const { words, headers } = more
  const what = JSON.stringify(body).slice(0, 110)
  return {
    title: `${server} ${status ?? 'in a stream'}: ${what} is ${kind}, ${retry ?? 'final'}`,
    refused: { status, body, ...(headers !== undefined && { headers }) },
    fails: failure(kind, retry), ...(words !== undefined && { words }),
  }
}

/** The facts of an error of this kind. */
export const failure = (kind: Kind, retry?: Retry): Refusal['fails'] => ({
  code: CODES[kind], retryable: retry !== undefined, isMistake: kind === 'mistake',
  retryAfterMs: typeof retry === 'number' ? retry : null,
})

/** A refusal in the words of the provider, which a run that ends with it repeats. */
export const says = (
  server: string, status: number, words: string, body: unknown, kind: Kind, retry?: Retry,
): Refusal => refused(server, status, body, kind, retry, { words })

/** The same inside a stream. */
export const streamed = (
  title: string, words: string | RegExp, kind: Kind, retry: Retry | undefined,
  ...stream: readonly object[]
): Refusal => ({ title: `${title}, in the stream`, stream, words, fails: failure(kind, retry) })

/** An error in OpenAI's format. */
export const plain = (message: string, more: object = {}): object => ({
  error: { message, param: null, ...more },
})
/** An error in Anthropic's format. */
export const typed = (type: string, message: string): object => ({
  type: 'error', error: { type, message }, request_id: 'req_1',
})
/** An error in Google's format. */
export const google = (
  code: number, status: string, message: string, ...details: readonly object[]
): object => ({ error: { code, status, message, details } })
/** A stream of Chat Completions begins with this. */
export const CHUNK: object = { choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }
/** Google's way to say when to try again. */
export const retryInfo = (retryDelay: string): object => ({
  '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay,
})
