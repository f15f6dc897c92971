/** Colours of programs' outputs in the dashboard, and its search in what an entry holds. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ansi, event, folder, search } from './static-modules.js'

const { linesOf, withoutStyles, classesOf } = ansi
const { matchesOf, wordsOf } = search

/** Pieces as `text|classes`, lines apart. */
const shown = (text: string): string[][] =>
  linesOf(text).map((line) => line.map((run) => `${run.text}|${classesOf(run.style)}`))

/** The classes of the text after a sequence. */
const after = (sequences: string): string => classesOf(linesOf(`${sequences}x`)[0]![0]!.style)

for (const [sequence, classes] of [
  ['\x1b[31m', 'fg-1'],
  ['\x1b[91m', 'fg-9'],
  ['\x1b[42m', 'bg-2'],
  ['\x1b[107m', 'bg-15'],
  ['\x1b[1;4;32m', 'fg-2 bold underline'],
  ['\x1b[1m\x1b[22m', ''],
  ['\x1b[2m', 'dim'],
  // Dim text of a colour would be hard to read.
  ['\x1b[2;31m', 'fg-1'],
  ['\x1b[3;9m', 'italic strike'],
  ['\x1b[7m', 'inverse'],
  ['\x1b[31;7m', 'bg-1'],
  ['\x1b[31;42;7m', 'fg-2 bg-1'],
  ['\x1b[31m\x1b[39m', ''],
  ['\x1b[31m\x1b[m', ''],
  ['\x1b[38;5;9m', 'fg-9'],
  ['\x1b[38;5;208m', 'fg-11'],
  ['\x1b[38;5;22m', 'fg-2'],
  ['\x1b[48;5;18m', 'bg-4'],
  ['\x1b[38;5;244m', 'fg-8'],
  ['\x1b[38;5;999m', 'fg-8'],
  ['\x1b[38;2;255;0;0m', 'fg-9'],
  ['\x1b[38;2;20;90;30m', 'fg-2'],
  ['\x1b[38;2;255;255;255m', 'fg-15'],
  ['\x1b[38:2::20:30:200m', 'fg-4'],
  ['\x1b[38:2:20:30:200m', 'fg-4'],
  ['\x1b[38:5:1m', 'fg-1'],
  ['\x1b[38;2;1m', 'fg-0'],
  ['\x1b[4:3m', 'underline'],
  ['\x1b[4m\x1b[4:0m', ''],
  ['\x1b[38;5m', 'fg-0'],
  ['\x1b[38m', ''],
  // Nobody can hide text: concealed and blinking text is plain.
  ['\x1b[8m', ''],
  ['\x1b[5m', ''],
  ['\x1b[999m', ''],
] as const) {
  test(`${JSON.stringify(sequence)} is "${classes}"`, () => assert.equal(after(sequence), classes))
}

test('a style goes on in the next line, and ends where it ends', () => {
  assert.deepEqual(shown('a\x1b[31mb\r\nc\x1b[0md\n'), [
    ['a|', 'b|fg-1'], ['c|fg-1', 'd|'], [],
  ])
  assert.deepEqual(shown(''), [[]])
  // A sequence that changes nothing makes no pieces.
  assert.deepEqual(shown('a\x1b[0mb\x1b[39mc'), [['abc|']])
})

test('what tidies a line is left out; every other control stays, to be shown as an escape', () => {
  assert.equal(withoutStyles('\x1b[01;31m\x1b[Kfound\x1b[m\x1b[K\x1b(B'), 'found')
  for (const hidden of ['\x1b[2J', '\x1b[1A', '\x1b]8;;http://x\x07', '\x1b]0;title\x07', '\x9b31m'])
    assert.equal(withoutStyles(`a${hidden}b`), `a${hidden}b`)
  assert.equal(linesOf('a\rb\x08c').length, 1)
  assert.equal(withoutStyles(`\x1b[${'1;'.repeat(200)}m`).startsWith('\x1b['), true)
})

function colours(text: string, kind: string): string[] {
  return Array.from({ length: 16 }, (_, i) => {
    const [, colour] = new RegExp(`--${kind}-${i}: (#[0-9a-f]{6});`).exec(text) ?? []
    assert.ok(colour, `--${kind}-${i}`)
    return colour
  })
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
}

test('every colour is legible on every background, in light and in dark', () => {
  const sheet = readFileSync(new URL('output.css', folder), 'utf8')
  const frame = readFileSync(new URL('style.css', folder), 'utf8')
  const at = [sheet.indexOf('@media (prefers'), frame.indexOf('@media (prefers')] as const
  for (const [name, own, page] of [
    ['light', sheet.slice(0, at[0]), frame.slice(0, at[1])],
    ['dark', sheet.slice(at[0]), frame.slice(at[1])],
  ] as const) {
    const page16 = (colour: string): string =>
      new RegExp(`--${colour}: (#[0-9a-f]{6});`).exec(page)![1]!
    const fronts = [...colours(own, 'fg'), page16('text'), page16('muted')]
    const backs = [...colours(own, 'bg'), page16('sunken')]
    for (const front of fronts) {
      for (const back of backs) {
        const [low, high] = [luminance(front), luminance(back)].sort((a, b) => a - b)
        const ratio = (high! + 0.05) / (low! + 0.05)
        assert.ok(ratio >= 4.5, `${name}: ${front} on ${back} has ${ratio.toFixed(2)}`)
      }
    }
  }
})
const call = event('tool_call', { tool: 'bash', call_id: 'c77', args: { command: 'say "hi"\nls' } })
const result = (output: string): object => ({
  result: event('tool_result', { tool: 'bash', call_id: 'c77', output, exit_code: 3 }),
})

for (const { name, typed, output = '', found } of [
  { name: 'a word of the command', typed: 'LS', found: 1 },
  { name: 'quotes and line ends, as they are', typed: '"hi"\nls', found: 1 },
  { name: 'an id that nobody sees', typed: 'c77', found: 0 },
  { name: 'what is folded away', typed: 'needle', output: 'needle needleneedle', found: 3 },
  { name: 'no overlaps', typed: 'aa', output: 'aaaa', found: 2 },
  { name: 'text whose colour changes', typed: 'foobar', output: '\x1b[31mfoo\x1b[0mbar', found: 1 },
  { name: 'an escape that stands for a character', typed: '\\u202e', output: 'a\u202eb', found: 1 },
  { name: 'the character itself', typed: '\u202e', output: 'a\u202eb', found: 1 },
  { name: 'a number', typed: '3', found: 1 },
]) {
  test(`the search counts ${name}`, () => {
    assert.equal(matchesOf(call, result(output), wordsOf(typed)), found)
  })
}
