import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeltaPayload } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { StreamRedactor } from '../../../lib/agent/redaction/stream-redactor.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { REDACTED } from '../../../lib/internal/errors.js'
import { openEngine } from '../../helpers/engine.js'
import { NAMED, redactor, shownOf, SECRETS } from './streamed-secrets.js'

test('text that cannot begin a secret is released, but for two letters that may begin one', () => {
  const stream = new StreamRedactor(new Redactor([]))
  let [sent, shown] = ['', '']
  for (const piece of ['Hello', ' ', 'task', '-force one.', ' b', '--z', ' (sky', ')', ' skein']) {
    sent += piece
    shown += stream.push(piece)
    assert.ok(sent.startsWith(shown) && sent.length - shown.length <= 2, shown)
  }
  shown += stream.push('\n see sk')
  assert.equal(shown, `${sent}\n see `)
  assert.equal(shown + stream.push('y') + stream.end(), `${sent}\n see sky`)
})

for (const [name, secret] of SECRETS) {
  test(`${name} is in no piece, wherever the text is split`, () => {
    for (const around of [
      ['', ''],
      ['The key is ', ', keep it.'],
      ['sk-ant- eyJ -----BEGIN x aXa ', '\n-----END aX'],
    ]) {
      const text = around.join(secret)
      const whole = redactor.text(text)
      assert.ok(whole.includes(REDACTED))
      for (let a = 0; a <= text.length; a++) {
        for (const ends of [[a], [a, Math.min(text.length, a + 3)]]) {
          assert.equal(shownOf(text, ends).join(''), whole)
        }
      }
      const single = Array.from({ length: text.length }, (_, at) => at)
      assert.equal(shownOf(text, single).join(''), whole)
    }
  })
}

test('the held text is bounded: beyond the bound the mark replaces it and all that follows', () => {
  const stream = new StreamRedactor(redactor)
  const shown = [stream.push('See -----BEGIN PRIVATE KEY-----\n')]
  for (let n = 0; n < 40; n++) shown.push(stream.push('A'.repeat(1_000)))
  shown.push(stream.push('\n-----END PRIVATE KEY----- over'), stream.end())
  assert.equal(shown.join(''), `See ${REDACTED}`)
})

test('subscribers see no secret in deltas, and the offsets of the pieces add up', async (t) => {
  const [, secret] = SECRETS[1]!
  const model = new ScriptedModel([
    (request) => {
      for (const piece of ['Key: hun', 'ter2-horse', '-batte', 'ry.', ' And hunter2-ho'])
        request.onDelta?.(piece)
      return { text: `Key: ${secret}. And hunter2-ho` }
    },
  ])
  const { engine } = await openEngine(t, {
    providers: [
      {
        id: 'test',
        description: 'a test',
        isLanguageModel: false,
        suggestions: [],
        create: () => model,
      },
    ],
    defaultModel: 'test:it',
    secrets: NAMED,
  })
  const { details } = await engine.create({ goal: 'shell: false', max_iterations: 1 })
  const deltas: DeltaPayload[] = []
  let turn = ''
  for await (const items of await engine.subscribe(details.run_id, { deltas: true })) {
    for (const item of items) {
      if (item.seq === null)
        deltas.push((JSON.parse(item.json) as { payload: DeltaPayload }).payload)
      else if (item.kind === 'model_turn')
        turn = (JSON.parse(item.json) as { payload: { text: string } }).payload.text
    }
  }
  assert.equal(turn, `Key: ${REDACTED}. And hunter2-ho`)
  let released = ''
  for (const { offset, text } of deltas) {
    assert.equal(offset, released.length)
    released += text
  }
  assert.ok(released.startsWith(turn), released)
})
