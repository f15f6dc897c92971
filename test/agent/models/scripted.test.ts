import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ModelError, type Message } from 'runwright/agent'
import { ManualClock, ScriptedModel, type ScriptedTurn } from 'runwright/agent/testing'
import { parseScript } from '../../../lib/agent/models/scripted/script-file.js'
import { ScriptedPlayer, scriptedProvider } from '../../../lib/agent/models/scripted/provider.js'
import { modelRequest, tool } from './exchange.js'

const play = (turns: readonly ScriptedTurn[]) => new ScriptedPlayer('scripted:test', turns)
const said = (text: string): Message => ({ role: 'assistant', text, calls: [] })
const result = (output: string, exit_code = 0): Message => ({
  role: 'tool',
  call_id: 'call_1_1',
  tool: 'bash',
  output,
  exit_code,
})

test('the number of turns in the conversation selects the next turn', async () => {
  const model = play([{ text: 'one' }, { text: 'two' }])
  const [user] = modelRequest().messages
  assert.equal((await model.complete(modelRequest())).message.text, 'one')
  assert.equal(
    (await model.complete(modelRequest({ messages: [user!, said('one')] }))).message.text,
    'two',
  )
  assert.equal(
    (await model.complete(modelRequest())).message.text,
    'one',
    'the same request gives the same turn',
  )
})

test('a turn has calls with ids, usage, reasoning and a stop reason', async () => {
  const turn = await play([
    {
      text: 'Look.',
      reasoning: 'Hm.',
      calls: [
        { tool: 'bash', args: { command: 'ls' } },
        { tool: 'read_file', error: 'cut off' },
      ],
      usage: { input_tokens: 5 },
    },
  ]).complete(modelRequest())
  assert.deepEqual(turn, {
    message: {
      role: 'assistant',
      text: 'Look.',
      calls: [
        { call_id: 'call_1_1', tool: 'bash', args: { command: 'ls' } },
        { call_id: 'call_1_2', tool: 'read_file', args: {}, error: 'cut off' },
      ],
    },
    reasoning: 'Hm.',
    usage: { input_tokens: 5, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 },
    stop: 'tool_calls',
  })
})

test('visible text is emitted in pieces that add up', async () => {
  let text = ''
  await play([{ text: 'One two\nthree.' }]).complete(
    modelRequest({ onDelta: (piece) => void (text += piece) }),
  )
  assert.equal(text, 'One two\nthree.')
})

test('a request after the end of the script is an error that says so', async () => {
  const request = modelRequest({ messages: [said('a'), said('b')] })
  await assert.rejects(play([{}, {}]).complete(request), (error) => {
    assert.ok(error instanceof ModelError)
    assert.equal(error.retryable, false)
    assert.match(error.message, /the script has 2 turns, and turn 3 was asked for/)
    return true
  })
})

const history: readonly Message[] = [
  { role: 'user', text: 'Fix it.' },
  said('a'),
  result('2 tests fail', 1),
]
for (const { expect, says } of [
  { expect: { messages_at_least: 4 }, says: 'at least 4 messages, got 3' },
  { expect: { iteration: 2 }, says: 'iteration 2, got 1' },
  { expect: { turn: 1 }, says: 'turn 1, got 0' },
  {
    expect: { system_contains: 'engineer' },
    says: 'the system prompt to contain "engineer", but it is "Be good."',
  },
  {
    expect: { last_user_contains: ['Fix', 'now'] },
    says: 'the last user message to contain "now"',
  },
  {
    expect: { last_tool_result_contains: 'pass' },
    says: 'the last tool result to contain "pass", but it is "2 tests fail"',
  },
  { expect: { last_tool_exit_code: 0 }, says: 'last_tool_exit_code 0, got 1' },
  { expect: { tool_results: 2 }, says: 'tool_results 2, got 1' },
  { expect: { tools_include: ['bash', 'grep'] }, says: 'the tools grep, offered are bash' },
]) {
  test(`a failed expectation is named: ${says}`, async () => {
    const model = play([{}, { expect }])
    const request = modelRequest({ system: 'Be good.', messages: history, tools: [tool('bash')] })
    await assert.rejects(model.complete(request), (error) => {
      assert.ok(error instanceof ModelError)
      assert.equal(error.retryable, false)
      assert.ok(error.message.startsWith('scripted:test: turn 2 expected '), error.message)
      assert.ok(error.message.includes(says), error.message)
      return true
    })
  })
}

test('a turn whose expectations hold is answered', async () => {
  const expect = {
    messages_at_least: 3,
    iteration: 1,
    turn: 0,
    last_user_contains: 'Fix',
    last_tool_result_contains: ['2 tests', 'fail'],
    last_tool_exit_code: 1,
    tool_results: 1,
    tools_include: ['bash'],
  }
  const request = modelRequest({ messages: history, tools: [tool('bash')] })
  assert.equal((await play([{}, { text: 'ok', expect }]).complete(request)).message.text, 'ok')
})

test('expectations on a tool result fail when there is none', async () => {
  await assert.rejects(
    play([{ expect: { last_tool_result_contains: 'x' } }]).complete(modelRequest()),
    /there is none/,
  )
  await assert.rejects(
    play([{ expect: { last_tool_exit_code: 0 } }]).complete(modelRequest()),
    /got none/,
  )
})

test('a scripted failure with times is counted per run', async () => {
  const error = {
    code: 'ERR_AGENT_MODEL_RATE_LIMIT',
    retryable: true,
    retry_after_ms: 5,
    message: 'slow down',
    times: 2,
  } as const
  const model = play([{ text: 'at last', error }])
  for (let i = 0; i < 2; i++) {
    await assert.rejects(model.complete(modelRequest()), {
      code: 'ERR_AGENT_MODEL_RATE_LIMIT',
      retryable: true,
      retryAfterMs: 5,
    })
  }
  assert.equal((await model.complete(modelRequest())).message.text, 'at last')
  const other = modelRequest({ run: { ...modelRequest().run, run_id: 'other' } })
  await assert.rejects(model.complete(other), /slow down/)
})

test('a failure without times always fails, and may be the model’s own mistake', async () => {
  const model = play([{ error: { model_mistake: true } }])
  for (let i = 0; i < 3; i++)
    await assert.rejects(model.complete(modelRequest()), { modelMistake: true, retryable: false })
})

test('a delay uses the clock and ends with the signal', async () => {
  const clock = new ManualClock()
  const model = new ScriptedPlayer('scripted:slow', [{ text: 'done', delay_ms: 1_000 }], clock)
  const waited = model.complete(modelRequest())
  await clock.whenPending()
  clock.advance(1_000)
  assert.equal((await waited).message.text, 'done')
  const controller = new AbortController()
  const aborted = model.complete(modelRequest({ signal: controller.signal }))
  controller.abort(new Error('enough'))
  await assert.rejects(aborted, /enough/)
  await assert.rejects(model.complete(modelRequest({ signal: controller.signal })), /enough/)
})

for (const { title, json, says } of [
  { title: 'invalid JSON', json: '{', says: /is not JSON/ },
  { title: 'no turns', json: '{}', says: /\/turns is required/ },
  {
    title: 'an unknown field',
    json: '{"turns":[{"calls":[{"tool":"a","arg":{}}]}]}',
    says: /\/turns\/0\/calls\/0\/arg/,
  },
  {
    title: 'an unknown expectation',
    json: '{"turns":[{"expect":{"last_tool_result":"x"}}]}',
    says: /\/turns\/0\/expect\/last_tool_result/,
  },
  { title: 'a value of the wrong type', json: '{"turns":[{"text":1}]}', says: /\/turns\/0\/text/ },
  {
    title: 'an unknown code',
    json: '{"turns":[{"error":{"code":"E"}}]}',
    says: /\/turns\/0\/error\/code/,
  },
  {
    title: 'a delay that is too long',
    json: '{"turns":[{"delay_ms":600001}]}',
    says: /\/turns\/0\/delay_ms/,
  },
]) {
  test(`a script with ${title} is refused with a pointer to it`, () => {
    assert.throws(
      () => parseScript(json, 'scripted:x.json'),
      (error) => error instanceof ModelError && says.test(error.message),
    )
  })
}

test('the script in the guide is valid', () => {
  const guide = readFileSync(new URL('../../../docs/models.md', import.meta.url), 'utf8')
  const [, json = ''] = /```json\n(\{\s+"description"[^]*?)```/.exec(guide) ?? []
  assert.equal(parseScript(json, 'docs/models.md').turns.length, 3)
})

test('script files are read only from their folder, and no path escapes it', async () => {
  const base = await mkdtemp(join(tmpdir(), 'runwright-scripts-'))
  try {
    const folder = join(base, 'scripts')
    const turns = JSON.stringify({ turns: [{ text: 'hello' }] })
    await mkdir(join(folder, 'sub'), { recursive: true })
    await writeFile(join(base, 'outside.json'), turns)
    await writeFile(join(folder, 'sub', 'inside.json'), turns)
    await symlink(join(base, 'outside.json'), join(folder, 'link.json'))
    await symlink(join(base, 'nowhere.json'), join(folder, 'dangling.json'))
    await symlink(base, join(folder, 'up'))
    await symlink(join(folder, 'sub', 'inside.json'), join(folder, 'good-link.json'))
    const provider = scriptedProvider(folder)
    for (const name of ['sub/inside.json', 'good-link.json', 'sub/../sub/inside.json']) {
      const turn = await provider.create(name).complete(modelRequest())
      assert.equal(turn.message.text, 'hello')
    }
    for (const name of [
      '../outside.json',
      'link.json',
      'dangling.json',
      'up/outside.json',
      join(base, 'outside.json'),
      'sub',
      '',
      '.',
      'no.json',
      'a\0b',
      'sub/inside.json/x',
    ]) {
      assert.throws(
        () => provider.create(name),
        (error) => {
          assert.ok(error instanceof ModelError, `${name} was read`)
          assert.match(error.message, /no file for scripted:/)
          assert.ok(!error.message.includes(folder), 'the error must not show the host’s paths')
          return true
        },
      )
    }
    assert.deepEqual(
      [provider.create('sub/inside.json').name, provider.isLanguageModel],
      ['scripted:sub/inside.json', false],
    )
  } finally {
    await rm(base, { recursive: true })
  }
})

test('ScriptedModel records requests and knows its unused turns', async () => {
  const model = new ScriptedModel([
    { text: 'one' },
    (request) => ({ text: `turn ${request.run.turn}` }),
    { text: 'three' },
  ])
  const messages: Message[] = [...modelRequest().messages]
  await model.complete(modelRequest({ messages }))
  messages.push(said('one'))
  const second = await model.complete(
    modelRequest({ messages, run: { ...modelRequest().run, turn: 1 } }),
  )
  assert.equal(second.message.text, 'turn 1')
  assert.deepEqual(
    model.requests.map((request) => request.messages.length),
    [1, 2],
  )
  assert.throws(() => model.assertUsedUp(), /of 3 turns, never requested: 3/)
  await model.complete(modelRequest({ messages: [...messages, said('two')] }))
  model.assertUsedUp()
})

test('ScriptedModel fails by script, by function and past its end', async () => {
  const model = new ScriptedModel([
    { error: { retryable: true, times: 1 }, text: 'ok' },
    () => {
      throw new Error('mine')
    },
  ])
  await assert.rejects(model.complete(modelRequest()), { retryable: true })
  const texts: string[] = []
  await model.complete(modelRequest({ onDelta: (text) => void texts.push(text) }))
  assert.deepEqual(texts, ['ok'])
  await assert.rejects(model.complete(modelRequest({ messages: [said('a')] })), /mine/)
  await assert.rejects(
    model.complete(modelRequest({ messages: [said('a'), said('b')] })),
    /turn 3 was asked for/,
  )
  model.assertUsedUp()
})

test('a request for a summary takes no turn, and a summary counts for its turns', async () => {
  const json = '{"turns": [{"text": "one"}, {"text": "two"}], "summary": {"text": "in short"}}'
  const { turns, summary } = parseScript(json, 'scripted:x.json')
  const [user] = modelRequest().messages
  const stands: Message = { role: 'user', text: '[Summary of 1 earlier turns', stands_for: 1 }
  for (const model of [
    new ScriptedPlayer('scripted:x.json', turns, undefined, summary),
    new ScriptedModel(turns, { summary }),
  ]) {
    assert.equal(model.summarizes, true)
    const messages = [user!, said('one'), user!]
    const asked = modelRequest({ messages, purpose: 'summary' })
    assert.equal((await model.complete(asked)).message.text, 'in short')
    const next = modelRequest({ messages: [user!, stands] })
    assert.equal((await model.complete(next)).message.text, 'two')
    if (model instanceof ScriptedModel) assert.throws(() => model.assertUsedUp(), /requested: 1$/)
  }
  assert.equal(play(turns).summarizes, false)
  assert.equal(new ScriptedModel(turns).summarizes, false)
  const bad = '{"turns": [], "summary": {"txt": "a"}}'
  assert.throws(() => parseScript(bad, 'scripted:x'), /summary/)
  const wrong = { summary: { txt: 'a' } } as unknown as { summary: ScriptedTurn }
  assert.throws(() => new ScriptedModel([], wrong), /summary.*txt|txt.*summary/)
})
