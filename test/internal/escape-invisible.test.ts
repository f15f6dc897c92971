import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { escapeInvisible } from 'runwright/agent'
import { jsonLines, type LogLine } from 'runwright/server'
import { INVISIBLE_SAMPLES } from '../helpers/invisible.js'

interface PageText {
  visible(text: string): string
  readable(text: string): string
  uncoloured(text: string): string
  clipped(text: string, length: number): string
}
const lib = fileURLToPath(new URL('../../lib/', import.meta.url))
const page = (await import(`${lib}server/dashboard/static/visible.js`)) as PageText

for (const [name, text] of Object.entries(INVISIBLE_SAMPLES)) {
  test(`${name} is shown as an escape`, () => {
    for (const character of text) {
      const code = character.codePointAt(0)!.toString(16)
      const shown = code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
      assert.equal(escapeInvisible(`a${character}b`), `a${shown}b`)
      assert.equal(page.readable(`a${character}b`), `a${shown}b`, 'in prose')
    }
  })
}

test('what can be seen is left alone, in any script', () => {
  for (const text of ['\t\n !~', 'naïve Ωμέγα 世界 שלום مرحبا नमस्ते 한국어', '✓ 😀 →', '\ue000']) {
    assert.equal(escapeInvisible(text), text)
    assert.equal(page.readable(text), text)
  }
})

test('the dashboard escapes exactly what the library escapes', () => {
  // Planes 3 to 13 are not assigned.
  for (let first = 0; first <= 0x10ffff; first += 0x100) {
    if (first >= 0x3_0000 && first < 0xe_0000) continue
    if (first > 0xe_1000 && first < 0x10_ff00) continue
    const codes = Array.from({ length: 0x100 }, (_, i) => first + i)
    const text = codes.map((code) => String.fromCodePoint(code)).join(' ')
    assert.equal(page.visible(text), escapeInvisible(text), `from ${first.toString(16)}`)
  }
})

test('a log line is the same JSON, and controls no terminal', () => {
  const model_name = `m${Object.values(INVISIBLE_SAMPLES).join('')}`
  let written = ''
  jsonLines({ write: (text) => (written += text) })({ model_name } as unknown as LogLine)
  assert.match(written, /^[\x20-\x7e]*\n$/)
  assert.deepEqual(JSON.parse(written), { model_name })
})

test('in prose, joiners and variation selectors stay where they shape what is seen', () => {
  const kept = {
    'a family': '👨\u200d👩\u200d👧',
    'a flag': '🏳\ufe0f\u200d🌈',
    'a skin tone': '👩🏽\u200d💻',
    'a keycap': '1\ufe0f⃣',
    'a text symbol': '✔\ufe0e',
    Persian: 'می\u200cخواهم',
    Hindi: 'क्\u200dष',
    'an ideographic blank': '日本\u3000語',
    'a French blank': 'quoi\u202f?',
    'an Arabic verse': '\u06dd١',
  }
  for (const [name, text] of Object.entries(kept)) {
    assert.equal(page.readable(text), text, name)
    assert.notEqual(page.visible(text), text, `${name}, but not in commands`)
  }
  const lost = ['a\u200db', '\u200d👩', '👩\u200d', 'می\u200c', '✔\ufe0f\ufe0f', 'a\ufe0f', '👩\u200da']
  for (const text of lost) assert.match(page.readable(text), /\\u/, escape(text))
  assert.equal(page.readable('a\r\nb\rc'), 'a\nb\\u000dc')
})

test('output is shown without colours, and with what else would control a terminal', () => {
  assert.equal(page.uncoloured('\x1b[1;32m✔\x1b[0m ok'), '✔ ok')
  assert.equal(page.uncoloured('\x1b[2J\x1b]0;x\x07'), '\\u001b[2J\\u001b]0;x\\u0007')
})

test('text is clipped between characters', () => {
  assert.equal(page.clipped('abc', 3), 'abc')
  assert.equal(page.clipped('ab😀', 3), 'ab…')
})

test('nothing is written to a terminal but through escapeInvisible', () => {
  // Errors of the host's own functions, with their stacks.
  const hostsErrors = ['ws/client.ts', 'ws/server.ts', 'agent/run/run-parts.ts']
  const files = readdirSync(lib, { recursive: true, encoding: 'utf8' }).filter((name) => {
    return name.endsWith('.ts') && name !== 'internal/errors.ts'
  })
  for (const name of files) {
    for (const line of readFileSync(lib + name, 'utf8').split('\n')) {
      if (/^\s*(?:\*|\/\*|\/\/)/.test(line)) continue
      assert.doesNotMatch(line, /console\.|stderr\.write\((?!escapeInvisible)/, name)
      if (!hostsErrors.includes(name)) assert.doesNotMatch(line, /process\.emitWarning/, name)
    }
  }
})
