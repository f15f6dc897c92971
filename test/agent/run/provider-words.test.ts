/** What a run says when a provider has ended it: in the words of the provider. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { ModelError, type Message, type ModelProvider, type RunDetails } from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { judgeProvider } from '../../helpers/judge.js'

async function endOf(t: TestContext, provider: ModelProvider): Promise<RunDetails> {
  const { engine } = await openEngine(t, { providers: [provider] })
  const { events, details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 2 })
  assertInvariants(events)
  return details
}

const sizeOf = (messages: readonly Message[]): number => JSON.stringify(messages).length

for (const { when, limit } of [
  { when: 'at once', limit: 0 },
  { when: 'after a turn', limit: 1_200 },
]) {
  test(`a conversation that is refused ${when} ends with the provider's words`, async (t) => {
    const provider = testProvider(({ messages }) => {
      if (sizeOf(messages) > limit) {
        const message = 'm answered 400: the prompt has 9001 tokens, and the limit is 8192'
        throw new ModelError('ERR_AGENT_MODEL_CONTEXT', message, {
          retryable: false,
          statusCode: 400,
        })
      }
      return { calls: [{ tool: 'bash', args: { command: 'head -c 3000 /dev/zero | tr "\\0" x' } }] }
    })
    const details = await endOf(t, provider)
    assert.equal(details.end_reason, 'context_exhausted')
    assert.match(details.error?.message ?? '', /the prompt has 9001 tokens, and the limit is 8192/)
    assert.doesNotMatch(details.error?.message ?? '', /has \d+ left/)
  })
}

test('a window that is known is named when the conversation cannot fit it', async (t) => {
  const inner = testProvider(() => ({}))
  const provider = {
    ...inner,
    create: (name: string) => ({ ...inner.create(name), contextWindow: 1_000 }),
  }
  const details = await endOf(t, provider)
  assert.equal(details.end_reason, 'context_exhausted')
  assert.match(details.error?.message ?? '', /takes 1000 tokens in all/)
})

test('a run without a folder has the provider\'s words as they are', async (t) => {
  const words = 'x/y:free is not available, see https://a.example/models'
  const provider = testProvider(() => {
    throw new ModelError('ERR_AGENT_MODEL', words, { retryable: false })
  })
  const { engine } = await openEngine(t, { providers: [provider] })
  const { details } = await runToEnd(engine, {
    goal: 'result: add it up', workspace: 'none', result_schema: { type: 'object' },
  })
  assert.equal(details.error?.message, words)
})

const busy = (retryAfterMs: number): ModelError =>
  new ModelError('ERR_AGENT_MODEL_RATE_LIMIT', 'test:m answered 429: slow down', {
    retryable: true,
    statusCode: 429,
    retryAfterMs,
  })

test('a wait that is too long is named, with what to do', async (t) => {
  const details = await endOf(t, testProvider(() => Promise.reject(busy(900_000))))
  assert.equal(details.end_reason, 'provider_error')
  assert.equal(
    details.error?.message,
    'test:m answered 429: slow down (the provider asks to wait 15 minutes, and a run waits ' +
      '2 minutes at most: retry the run after that, or use another model)',
  )
})

test('the wait that the provider asks a judge to make is named as well', async (t) => {
  const { provider } = judgeProvider(() => {
    throw busy(7_200_500)
  })
  const write = { calls: [{ tool: 'write_file', args: { path: 'a', content: 'b' } }] }
  const worker = testProvider((_, n) => (n === 0 ? write : {}))
  const { engine } = await openEngine(t, { providers: [worker, provider], judgeModel: 'judge:j' })
  const { details } = await runToEnd(engine, { goal: 'Write a file.', max_iterations: 1 })
  assert.match(details.final_state.goal_reason, /asks to wait 121 minutes/)
})
