import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { cut, harmless, render } from '../../lib/cli/print.js'
import { shellWord } from '../../lib/internal/text.js'
import { wantsColour } from '../../lib/cli/terminal.js'
import { diffLines, farewellOf, lineOf } from '../../lib/cli/timeline.js'
import { INVISIBLE_SAMPLES } from '../helpers/invisible.js'

test('no byte and no code unit of a text controls the terminal', () => {
  for (let code = 0; code <= 0xffff; code += 1) {
    const shown = harmless(`a${String.fromCharCode(code)}b`)
    // Tabs stay; line feeds become blanks.
    assert.doesNotMatch(shown, /[\0-\x08\x0a-\x1f\x7f-\x9f]/, code.toString(16))
    if (code >= 0x20 && code < 0x7f) assert.equal(shown, `a${String.fromCharCode(code)}b`)
  }
  assert.equal(harmless('a\tb\nc\r\nd\re'), 'a\tb c d\\u000de')
})

for (const [attack, text, shown] of [
  ['clears the screen', '\x1b[2Jx', '\\u001b[2Jx'],
  ['sets the title', '\x1b]0;x\x07', '\\u001b]0;x\\u0007'],
  ['writes to the clipboard', '\x1b]52;c;eA==\x1b\\', '\\u001b]52;c;eA==\\u001b\\'],
  ['links elsewhere', '\x1b]8;;http://a.test\x1b\\b', '\\u001b]8;;http://a.test\\u001b\\b'],
  ['uses a C1 introducer', '\x9b2J', '\\u009b2J'],
  ['goes back over the line', 'rm -rf /\rls      ', 'rm -rf /\\u000dls      '],
  ['deletes what was written', 'ab\b\b', 'ab\\u0008\\u0008'],
  ['turns the direction', '\u202egpj.exe', '\\u202egpj.exe'],
  ['hides in tags', 'a\u{e0041}', 'a\\u{e0041}'],
] as const) {
  test(`a text that ${attack} is shown as it is written`, () => {
    assert.equal(harmless(text), shown)
    assert.equal(render([['red', text]], false, null), shown)
  })
}

for (const [what, characters] of Object.entries(INVISIBLE_SAMPLES)) {
  test(`a line shows ${what}`, () => {
    for (const character of characters) {
      assert.match(render([character], true, null), /^(\\u[\da-f]{4}|\\u\{[\da-f]+\})+$/)
    }
  })
}

test('the only sequences of a line are those of its styles', () => {
  const parts = [['bold', 'a\x1b[31mb'], ' ', ['red', '\x1b[0m']] as const
  const line = render(parts, true, null)
  assert.equal(line, '\x1b[1ma\\u001b[31mb\x1b[22m \x1b[31m\\u001b[0m\x1b[39m')
  assert.equal(stripVTControlCharacters(line), render(parts, false, null))
})

/** Columns that a terminal takes for a text, counted in another way than `cut` does. */
function columnsOf(text: string): number {
  return [...text].reduce((sum, one) => {
    if (/\p{M}/u.test(one)) return sum
    return sum + (/[一-龥가-힣🙂🚀]/u.test(one) ? 2 : 1)
  }, 0)
}

for (const text of [
  'short', 'x'.repeat(500), '一二三四五六七八九十'.repeat(9), `${'🚀🙂'.repeat(40)} end`,
  `e${'\u0301'.repeat(5_000)}`, `a${'한글 '.repeat(40)}`,
]) {
  test(`${JSON.stringify(text.slice(0, 8))} fits into every number of columns`, () => {
    for (const columns of [10, 11, 40, 79, 80, 200]) {
      const shown = cut(text, columns)
      assert.ok(columnsOf(shown) <= columns, shown)
      assert.ok(shown.length <= 8 * columns + 1, `${shown.length} units`)
      assert.ok(shown === text || shown.endsWith('…'))
    }
  })
}

test('what fits exactly is not cut, and a cut keeps the styles', () => {
  assert.equal(cut('12345', 5), '12345')
  assert.equal(cut('123456', 5), '1234…')
  const line = render([['red', 'abcdef'], ['blue', 'ghi']], true, 5)
  assert.equal(line, '\x1b[31mabcd…\x1b[39m')
})

for (const [isTty, env, expected] of [
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: '1' }, false],
  [true, { NO_COLOR: '' }, true],
  [true, { TERM: 'dumb' }, false],
  [false, { FORCE_COLOR: '1' }, true],
  [true, { FORCE_COLOR: '0' }, false],
  [false, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
] as const) {
  test(`colours ${isTty ? 'on' : 'off'} a terminal, with ${JSON.stringify(env)}`, () => {
    assert.equal(wantsColour(isTty, env), expected)
  })
}

test('a word of a shell is one, whatever is in it', () => {
  assert.equal(shellWord("it's $HOME"), `'it'\\''s $HOME'`)
})

test('a line about a call with endless arguments is short', () => {
  const args = { path: 'x'.repeat(1e6), old_text: 'y\n'.repeat(1e6), new_text: 'z' }
  const event = { kind: 'tool_call', payload: { tool: 'edit_file', args, call_id: 'c' } }
  const line = lineOf({ ...event, run_id: 'r', iteration: 1, ts: 1, seq: 1 } as never)
  assert.ok(render(line!, false, null).length < 1_000)
})

/** The lines of what a model says as it ends its turn. */
function said(text: string, stop: string): string[] {
  const payload = { turn: 1, text, stop }
  const event = { kind: 'model_turn', payload, run_id: 'r', iteration: 1, ts: 1, seq: 1 }
  return farewellOf(event as never).map((line) => render(line, false, null))
}

test('what a model says when it gives up is not cut', () => {
  const why = `No candidate left: ${'x'.repeat(2_000)}.`
  assert.deepEqual(said(`${why}\n\nThe nearest miss:\n--- a\u001b[2J\n`, 'refusal'), [
    `  model      ${why}`, ' '.repeat(13), `${' '.repeat(13)}The nearest miss:`,
    `${' '.repeat(13)}--- a\\u001b[2J`,
  ])
  assert.deepEqual(said(why, 'end'), [])
  assert.deepEqual(said(' \n', 'refusal'), [])
  assert.equal(said('x\n'.repeat(1e6), 'refusal').length, 60)
  assert.ok(said('x'.repeat(1e6), 'refusal').join('').length < 9_000)
})

/** The line of a result of `try_patches`. */
function triedLine(output: string, exit_code = 0): string {
  const payload = { tool: 'try_patches', call_id: 'c', output, exit_code, duration_ms: 1 }
  const event = { kind: 'tool_result', payload, run_id: 'r', iteration: 1, ts: 1, seq: 2 }
  return render(lineOf(event as never) ?? ['none'], false, null)
}

test('a call of try_patches is one line: how many patches it tried, and how many passed', () => {
  const args = { patches: [{ edits: [] }], command: 'node --test' }
  const payload = { tool: 'try_patches', args, call_id: 'c' }
  const event = { kind: 'tool_call', payload, run_id: 'r', iteration: 1, ts: 1, seq: 1 }
  assert.equal(lineOf(event as never), null)
  const output = '12 patches tried, 1 with exit code 0, 0 reached the time limit\nWithout a patch: '
  assert.equal(triedLine(output), '  try_patches 12 patches: 1 passed')
  const one = '1 patch tried, 0 with exit code 0, 0 reached the time limit'
  assert.equal(triedLine(one), '  try_patches 1 patch: 0 passed')
  const none = 'The command ran as it is, as there is no patch.\nWithout a patch: exit code 0'
  assert.equal(triedLine(none), '  try_patches no patch: the command ran as it is')
  assert.equal(triedLine('something\nelse'), '  try_patches something else')
  assert.match(triedLine('command is required', 1), /^ {2}try_patches exit 1 command is required$/)
})

test('what a verdict does not cover is named with the check and with the changes', () => {
  const payload = {
    achieved: true, reason: 'exit code 0', cached: false, counts: null, duration_ms: 12,
    held_back: ['cases.json', 'Makefile'], changed_tests: ['a.test.js'], allowed: [],
  }
  const event = { kind: 'goal_check', payload, run_id: 'r', iteration: 1, ts: 1, seq: 1 }
  assert.equal(
    render(lineOf(event as never)!, false, null),
    '  check      met: exit code 0 (12 ms); held back: cases.json, Makefile; ' +
      'edited tests: a.test.js',
  )
  const old = { ...event, payload: { ...payload, held_back: undefined, changed_tests: undefined } }
  old.payload.allowed = ['b.json'] as never
  assert.match(render(lineOf(old as never)!, false, null), /\(12 ms\); allowed: b\.json$/)
  const counts = { additions: 1, deletions: 1, binary: false }
  const rest = { old_path: null, status: 'modified', diff: '', mode: {}, redacted: false }
  const changed = { ...counts, ...rest }
  const changes = ['held_back', 'verified'].map((group) => ({ path: group, group, ...changed }))
  const lines = [...diffLines({ changes, more: 0, left_out: [], note: null } as never)]
  assert.deepEqual(lines.map((line) => render(line, false, null)), [
    'modified held_back (+1 -1) held back', 'modified verified (+1 -1)',
  ])
  const verdict = { changed_tests: ['verified'], allowed: ['verified'] }
  const marked = [...diffLines({ changes, more: 0, left_out: [], note: null } as never, verdict)]
  assert.equal(render(marked[1]!, false, null), 'modified verified (+1 -1) edited test allowed')
})
