import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, type EngineOptions, type Model, type ModelProvider } from 'runwright/agent'
import { RunServiceClient, type ModelDelta } from 'runwright/server'
import { assertMessageDescribed } from './conformance.js'
import { openReal, type Real } from './real.js'

/** A model that streams in pieces, each when the test releases it. */
function writer(pieces: readonly string[]): { provider: ModelProvider; release: () => void } {
  let release = (): void => {}
  const may = new Promise<void>((resolve) => (release = resolve))
  const model: Model = {
    name: 'slow:m',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    complete: async ({ onDelta }) => {
      await may
      for (const piece of pieces) onDelta?.(piece)
      const text = pieces.join('')
      return {
        message: { role: 'assistant', text, calls: [] },
        reasoning: '',
        usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 },
        stop: 'end',
      }
    },
  }
  const provider: ModelProvider = {
    id: 'slow',
    description: 'writes in pieces',
    isLanguageModel: false,
    suggestions: ['m'],
    create: () => model,
  }
  return { provider, release }
}

async function openWriter(
  t: Parameters<typeof openReal>[0],
  pieces: readonly string[],
): Promise<{ real: Real; runId: string; release: () => void }> {
  const { provider, release } = writer(pieces)
  const engine: Partial<EngineOptions> = {
    store: new MemoryStore(),
    providers: [provider],
    defaultModel: 'slow:m',
  }
  const real = await openReal(t, { engine })
  const { json } = await real.call('POST', '/api/runs', {
    body: { goal: 'shell: false', max_iterations: 1 },
  })
  return { real, runId: json.run_id, release }
}

test('with deltas=1 a WebSocket gets text of the model before the turn is recorded', async (t) => {
  const { real, runId, release } = await openWriter(t, ['one ', 'two'])
  using plain = await real.socket(`/api/ws/${runId}`)
  using client = await real.socket(`/api/ws/${runId}?deltas=1&kinds=model_turn,run_end`)
  release()
  const { events, code } = await client.rest()
  assert.equal(code, 1000)
  assert.deepEqual(
    events.map(({ kind, payload, seq }) => [kind, payload.text, seq === undefined]),
    [
      ['model_delta', 'one ', true],
      ['model_delta', 'two', true],
      ['model_turn', 'one two', false],
      ['run_end', undefined, false],
    ],
  )
  const kinds = (await plain.rest()).events.map(({ kind }) => kind)
  assert.ok(!kinds.includes('model_delta'))
})

test('over SSE deltas have no id, and the log stays gap-free around them', async (t) => {
  const { real, runId, release } = await openWriter(t, ['a', 'b'])
  await using runs = new RunServiceClient({ baseUrl: real.served.origin, trustEnv: false })
  const deltas: ModelDelta[] = []
  const seqs: number[] = []
  for await (const item of runs.events(runId, { deltas: true })) {
    assertMessageDescribed(item)
    if (item.kind === 'model_delta') deltas.push(item)
    else seqs.push(item.seq)
    if (item.kind === 'step_start') release()
  }
  assert.deepEqual(deltas.map(({ payload }) => payload.text), ['a', 'b'])
  assert.deepEqual(seqs, seqs.map((_, index) => index + 1))
})

for (const query of ['?deltas=2', '?deltas=', '?deltas=1&deltas=1']) {
  test(`a stream with ${query} is refused`, async (t) => {
    const { real, runId } = await openWriter(t, [])
    using client = await real.socket(`/api/ws/${runId}${query}`)
    assert.equal(client.status, 422)
    assert.equal((await client.problem()).errors[0].pointer, '/deltas')
  })
}
