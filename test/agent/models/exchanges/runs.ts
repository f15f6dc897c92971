/** Runs whose models are behind servers that answer what a test wants. */
import type { TestContext } from 'node:test'
import {
  createHttpProvider,
  type EventPayloads, type HttpProvider, type HttpProviderOptions, type JsonObject,
} from 'runwright/agent'
import {
  answering, type Answer, type AnsweringServer, type Delivery,
} from '../../../helpers/deliveries.js'
import { openEngine, runToEnd } from '../../../helpers/engine.js'
import { assertInvariants } from '../../../helpers/invariants.js'
import { ADAPTERS, STREAMS, type Dialect } from './dialects.js'

/** How a case is played. */
export interface How {
  readonly t: TestContext
  readonly dialect: Dialect
  readonly delivery: Delivery
  /** True if answers are asked for as streams. */
  readonly streamed: boolean
}

/** What a provider answers: a whole answer, streamed if a stream is asked for, or a fixed one. */
export type Reply = { readonly whole: JsonObject } | Answer

/** How a run ended, without what differs from run to run. */
export interface RunOutcome {
  readonly status: string
  readonly end_reason: string | null
  readonly code: string | undefined
  readonly message: string
  readonly result: unknown
  readonly texts: readonly string[]
  readonly usages: readonly EventPayloads['llm_usage'][]
  readonly switches: readonly EventPayloads['model_switched'][]
  readonly usage: { readonly estimated_tokens: number; readonly model_calls: number }
  readonly cost: number
  readonly cost_known: boolean
  /** What each provider was sent. */
  readonly requests: readonly (readonly JsonObject[])[]
}

/** A provider of a run: what it answers, and how it is reached. */
export interface Provided {
  readonly replies: readonly Reply[]
  readonly dialect?: Dialect
  readonly model?: string
  readonly options?: Pick<HttpProviderOptions, 'prices'>
}

export const RESULT_SCHEMA = {
  type: 'object', properties: { total: { type: 'number' } }, required: ['total'],
  additionalProperties: false,
} as const

/** One dollar for each thousand tokens. */
const PRICES = { input: 1_000, output: 1_000, as_of: '2026-01-01' }

function answerOf(reply: Reply, dialect: Dialect, streamed: boolean): Answer {
  if (!('whole' in reply)) return reply
  return { body: streamed ? STREAMS[dialect](reply.whole) : reply.whole }
}

/** Plays a run for a result. Later providers may take over from the first. */
export async function run(
  how: How,
  provided: readonly Provided[],
  request: JsonObject = {},
): Promise<RunOutcome> {
  const providers: HttpProvider[] = []
  const servers: AnsweringServer[] = []
  for (const [i, { replies, dialect = how.dialect, options }] of provided.entries()) {
    const answers = replies.map((reply) => answerOf(reply, dialect, how.streamed))
    const server = await answering(answers, how.delivery)
    servers.push(server)
    providers.push(createHttpProvider(ADAPTERS[dialect], {
      id: `p${i}`, baseUrl: server.origin, transport: server.transport, stream: how.streamed,
      prices: PRICES, ...options,
    }))
  }
  const names = provided.map(({ model = 'm' }, i) => `p${i}:${model}`)
  const { engine } = await openEngine(how.t, {
    providers, defaultModel: names[0]!, random: () => 0,
  })
  const { events, details } = await runToEnd(engine, {
    goal: 'result: add it up', workspace: 'none', result_schema: RESULT_SCHEMA,
    ...(names.length > 1 && { fallback_models: names.slice(1) }), ...request,
  })
  assertInvariants(events)
  const result = (await engine.get(details.run_id)).result ?? null
  await engine.close()
  await Promise.all([...providers.map((one) => one.close()), ...servers.map((one) => one.close())])
  const { final_state, usage } = details
  return {
    status: details.status,
    end_reason: details.end_reason,
    code: details.error?.code,
    message: details.error?.message ?? '',
    result,
    texts: events.flatMap((one) => (one.kind === 'model_turn' ? [one.payload.text] : [])),
    usages: events.flatMap((one) => (one.kind === 'llm_usage' ? [one.payload] : [])),
    switches: events.flatMap((one) => (one.kind === 'model_switched' ? [one.payload] : [])),
    usage: { estimated_tokens: usage.estimated_tokens, model_calls: usage.model_calls },
    cost: final_state.estimated_cost_usd,
    cost_known: details.cost_known,
    requests: servers.map(({ requests }) => requests.map((body) => JSON.parse(body) as JsonObject)),
  }
}
