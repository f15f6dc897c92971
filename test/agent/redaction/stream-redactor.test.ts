import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeltaPayload } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { StreamRedactor } from '../../../lib/agent/redaction/stream-redactor.js'
import { REDACTED, Redactor } from '../../../lib/agent/redaction/redactor.js'
import { openEngine } from '../../helpers/engine.js'

const PEM_BODY = 'MIIEow+/AB\n'.repeat(12)
const PEM = `-----BEGIN RSA PRIVATE KEY-----\n${PEM_BODY}-----END RSA PRIVATE KEY-----`
const JWT = `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(20)}`
const NAMED = [
  'hunter2-horse',
  'hunter2-horse-battery',
  'two\nlines "quoted"',
  'aXaXab',
  '\u{1f511}secretvalue99',
]
const redactor = new Redactor(NAMED)

/** Redacts a text whose pieces end at these offsets. */
function shownOf(text: string, ends: readonly number[]): string[] {
  const stream = new StreamRedactor(redactor)
  const pieces = [0, ...ends].map((at, i) => text.slice(at, ends[i] ?? text.length))
  return [...pieces.map((piece) => stream.push(piece)), stream.end()]
}

const SECRETS: readonly (readonly [string, string])[] = [
  ['a name that begins another', 'hunter2-horse'],
  ['the longer of both', 'hunter2-horse-battery'],
  ['a text of several lines', NAMED[2]!],
  ['a text as it stands in JSON', JSON.stringify(NAMED[2]).slice(1, -1)],
  ['a text as it stands in a URL', encodeURIComponent(NAMED[2]!)],
  ['a name that begins like itself', 'aXaXab'],
  ['a name that begins with two UTF-16 units', NAMED[4]!],
  ['a key of Anthropic', `sk-ant-${'api03-Ab_'.repeat(5)}`],
  ['a key of GitHub', `ghp_${'aB3'.repeat(13)}`],
  ['a key of Amazon', 'AKIAABCDEFGHIJKLMNOP'],
  ['a web token', JWT],
  ['a private key', PEM],
]

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

test('random pieces give the same result as the whole text', () => {
  let state = 7
  const random = (below: number): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return Math.floor((state / 4_294_967_296) * below)
  }
  const words = [
    'a',
    ' ',
    'task-',
    'x',
    '\n',
    '-----',
    'BEGIN ',
    'sk-',
    'ant',
    '.',
    'eyJ',
    'aX',
    'hunter2',
    '😀',
    REDACTED,
  ]
  for (let n = 0; n < 3_000; n++) {
    let text = ''
    for (let i = random(8); i >= 0; i--) {
      const [, secret = ''] = SECRETS[random(SECRETS.length)]!
      const kind = random(4)
      text +=
        kind === 0
          ? secret
          : kind === 1
            ? secret.slice(0, random(secret.length))
            : words[random(words.length)]!
    }
    const ends: number[] = []
    for (let at = random(9); at < text.length; at += 1 + random(9)) ends.push(at)
    assert.equal(shownOf(text, ends).join(''), redactor.text(text), JSON.stringify({ text, ends }))
  }
})

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
