/** The usage of a call whose stream breaks off anywhere. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpModel, ModelError } from 'runwright/agent'
import { answering, DELIVERIES, type Delivery } from '../../helpers/deliveries.js'
import { modelRequest, seeded } from './exchange.js'
import { ADAPTERS, DIALECTS, STREAMS, whole, type Dialect } from './exchanges/dialects.js'

const TEXT = 'Überall x'.repeat(12)
/** `modelRequest()` as the estimator counts it: no instructions, and one short message. */
const INPUT = 8 + 9

/** Tokens of input that a format reports before its answer ends. */
const COUNTED_EARLY: Readonly<Record<Dialect, number>> = {
  'openai-chat': 0, 'openai-responses': 0, anthropic: 25, gemini: 25,
}

/** Calls that break off at 16 places, in order. */
async function breakOff(dialect: Dialect, delivery: Delivery): Promise<unknown> {
  const body = STREAMS[dialect](whole(dialect, { text: TEXT, usage: [25, 150] }))
  const end = Buffer.byteLength(body.slice(0, body.trimEnd().lastIndexOf('data:')))
  const random = seeded(5)
  const places = [0, 1, end, ...Array.from({ length: 13 }, () => Math.floor(random() * end))]
  const sorted = places.sort((a, b) => a - b)
  const answers = sorted.map((breaksAfter) => ({ body, breaksAfter }))
  await using server = await answering(answers, delivery)
  await using model = new HttpModel(ADAPTERS[dialect], {
    model: 'm', baseUrl: server.origin, transport: server.transport,
  })
  const list = []
  let most = 0
  for (const place of sorted) {
    const error = await model.complete(modelRequest()).catch((reason: unknown) => reason)
    assert.ok(error instanceof ModelError && error.retryable, `${place}`)
    const { usage: used } = error
    assert.ok(used !== undefined, `${place} ${String(error)}`)
    const early = COUNTED_EARLY[dialect]
    assert.ok([INPUT, early, 25].includes(used.input_tokens), `${place}`)
    assert.ok(used.output_tokens >= most, `${place}: more was received`)
    most = used.output_tokens
    const counted = used.input_tokens === early ? early : 0
    // By then, output is counted as the first token, or not at all.
    const estimated = used.estimated_tokens ?? 0
    if (place < end) assert.ok(estimated >= used.input_tokens - counted, `${place}`)
    assert.ok(estimated <= used.input_tokens + used.output_tokens - counted, `${place}`)
    list.push([place, used])
  }
  assert.ok(most >= TEXT.length / 3, `${most} tokens at the end`)
  return list
}

for (const dialect of DIALECTS) {
  test(`${dialect}: a stream that breaks off anywhere is counted or estimated`, async () => {
    const outcomes = []
    for (const delivery of DELIVERIES) outcomes.push(await breakOff(dialect, delivery))
    assert.deepEqual(outcomes[1], outcomes[0])
  })
}
