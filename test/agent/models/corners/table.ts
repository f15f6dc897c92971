/** The form of the table: each corner has, for each wire format, cases or the reason why not. */
import type { TestContext } from 'node:test'
import {
  createHttpProvider, HttpModel, ModelError,
  type CallUsage, type EventPayloads, type HttpProvider, type HttpProviderOptions,
  type JsonObject, type ModelRequest, type ModelTurn,
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
  /** Are answers asked for as streams? */
  readonly streamed: boolean
}

/** What a provider answers: a whole answer that is streamed as well, a refusal, or a stream. */
export type Reply =
  | { readonly whole: JsonObject }
  | { readonly status: number; readonly headers?: Answer['headers']; readonly body: unknown }
  | { readonly stream: string; readonly breaksAfter?: number }

/** What every case has. */
export interface Row {
  readonly title: string
  /** Only as a stream, because the answer is one, or the same refusal in both cases. */
  readonly once?: boolean
}

/** A line of the table. */
export interface Corner {
  readonly name: string
  /** By wire format: its cases, or why there are none. */
  readonly cells: Readonly<Record<Dialect, readonly Case[] | string>>
}

export interface Case extends Row {
  /** Plays the case, asserts what is expected, and returns what must not depend on the delivery. */
  readonly play: (how: How) => Promise<unknown>
}

export function corner<R extends Row>(
  name: string,
  play: (row: R, how: How) => Promise<unknown>,
  rows: Readonly<Record<Dialect, readonly R[] | string>>,
): Corner {
  const cells = Object.entries(rows).map(([dialect, cell]) => [
    dialect,
    typeof cell === 'string'
      ? cell
      : cell.map((row): Case => ({ ...row, play: (how) => play(row, how) })),
  ])
  return { name, cells: Object.fromEntries(cells) as Corner['cells'] }
}

export function answerOf(reply: Reply, { dialect, streamed }: How): Answer {
  if ('status' in reply) return reply
  if ('stream' in reply) return { body: reply.stream, breaksAfter: reply.breaksAfter }
  return { body: streamed ? STREAMS[dialect](reply.whole) : reply.whole }
}

/** What one call has given. */
export interface CallOutcome {
  readonly turn: ModelTurn | null
  readonly error: ModelError | null
  readonly used: CallUsage | null
}

/** A model behind a server of its own, which is called as often as it answers. */
export async function withModel<T>(
  how: How,
  replies: readonly Reply[],
  model: string,
  use: (
    call: (request: ModelRequest) => Promise<CallOutcome>,
    server: AnsweringServer,
  ) => Promise<T>,
): Promise<T> {
  await using server = await answering(replies.map((one) => answerOf(one, how)), how.delivery)
  await using made = new HttpModel(ADAPTERS[how.dialect], {
    model, baseUrl: server.origin, transport: server.transport, stream: how.streamed,
  })
  return await use(async (request) => {
    const [result] = await Promise.allSettled([made.complete(request)])
    if (result.status === 'fulfilled')
      return { turn: result.value, error: null, used: result.value.usage }
    if (!(result.reason instanceof ModelError)) throw result.reason
    return { turn: null, error: result.reason, used: result.reason.usage ?? null }
  }, server)
}

export const RESULT_SCHEMA = {
  type: 'object', properties: { total: { type: 'number' } }, required: ['total'],
  additionalProperties: false,
} as const

/** What a run has come to, without what differs from run to run. */
export interface RunOutcome {
  readonly status: string
  readonly end_reason: string | null
  readonly code: string | undefined
  readonly message: string
  readonly reason: string
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

/** One dollar for each thousand tokens. */
export const PRICES = { input: 1_000, output: 1_000, as_of: '2026-01-01' }

/** A run for a result; the second provider and those after it may take over from the first. */
export async function run(
  how: How,
  provided: readonly Provided[],
  request: JsonObject = {},
): Promise<RunOutcome> {
  const providers: HttpProvider[] = []
  const servers: AnsweringServer[] = []
  for (const [i, { replies, dialect = how.dialect, options }] of provided.entries()) {
    const answers = replies.map((one) => answerOf(one, { ...how, dialect }))
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
    reason: final_state.goal_reason,
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
