import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REDACTED } from '../../../lib/internal/errors.js'
import { redactor, shownOf, SECRETS } from './streamed-secrets.js'

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
