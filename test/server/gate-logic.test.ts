/** What the dashboard's gate decides without a page: diffs, edits as the tool does them, answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { editFileTool } from '../../lib/agent/tools/edit-file.js'
import type { ToolContext } from '../../lib/agent/tool.js'

const folder = new URL('../../lib/server/dashboard/static/', import.meta.url).href

type Present = { text: string | null } | { problem: string }
interface Diff { lines: string[]; added: number; removed: number }
interface Choice { call_id: string; runs: boolean; args: object | null; feedback: string }
interface Gate { kind: string; iteration: number; calls: object[]; candidates?: object[] }

const { diffTexts } = (await import(`${folder}line-diff.js`)) as {
  diffTexts(before: string, after: string): Diff | null
}
const { pathInFolder, proposedBy, resultOf } = (await import(`${folder}proposed-call.js`)) as {
  pathInFolder(path: string, cwd: string): string | null
  proposedBy(call: { tool: string; args: object }): { kind: string; shown: string[] }
  resultOf(proposed: object, present: Present): Present
}
const { answerOf, approveLabel, questionOf } = (await import(`${folder}gate-words.js`)) as {
  answerOf(choices: Choice[]): object
  approveLabel(choices: Choice[]): string
  questionOf(gate: Gate, details: object): string
}

/** The text that the lines of a diff make of `before`. */
function applied(before: string, { lines }: Diff): string {
  const old = before === '' ? [] : before.split(/(?<=\n)/)
  let [after, at] = ['', 0]
  for (const [i, line] of lines.entries()) {
    const text = lines[i + 1]?.startsWith('\\') ? line.slice(1) : `${line.slice(1)}\n`
    const [, from, count] = /^@@ -(\d+),(\d+)/.exec(line) ?? []
    if (from !== undefined) {
      const start = Number(from) - (count === '0' ? 0 : 1)
      after += old.slice(at, start).join('')
      at = start
    } else if (line.startsWith('+')) after += text
    else if (!line.startsWith('\\')) {
      assert.equal(text, old[at], 'a line of the text before')
      if (line.startsWith(' ')) after += text
      at += 1
    }
  }
  return after + old.slice(at).join('')
}

test('the diff of two texts makes the second of the first, with the fewest edits', () => {
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * below)
  }
  const text = (): string => {
    const lines = Array.from({ length: random(14) }, () => 'abcd'[random(4)]).join('\n')
    return random(2) === 0 && lines !== '' ? `${lines}\n` : lines
  }
  for (let i = 0; i < 3_000; i++) {
    const [before, after] = [text(), text()]
    const diff = diffTexts(before, after)!
    assert.equal(applied(before, diff), after, JSON.stringify([before, after]))
    assert.equal(diff.added + diff.removed, distance(before, after))
  }
})

/** The fewest lines to remove and add, by the table that every textbook has. */
function distance(before: string, after: string): number {
  const [a, b] = [before, after].map((text) => (text === '' ? [] : text.split(/(?<=\n)/)))
  const row = (): number[] => new Array<number>(b!.length + 1).fill(0)
  const common = Array.from({ length: a!.length + 1 }, row)
  for (let i = 1; i <= a!.length; i++)
    for (let j = 1; j <= b!.length; j++)
      common[i]![j] =
        a![i - 1] === b![j - 1]
          ? common[i - 1]![j - 1]! + 1
          : Math.max(common[i - 1]![j]!, common[i]![j - 1]!)
  return a!.length + b!.length - 2 * common[a!.length]![b!.length]!
}

test('texts that differ too much are one block, and too many lines are not compared', () => {
  const lines = (count: number, word: string): string =>
    Array.from({ length: count }, (_, i) => `${word} ${i}\n`).join('')
  const diff = diffTexts(`same\n${lines(3_000, 'a')}`, `same\n${lines(3_000, 'b')}`)!
  assert.deepEqual([diff.added, diff.removed], [3_000, 3_000])
  assert.equal(diff.lines[0], '@@ -1,3001 +1,3001 @@')
  assert.equal(diffTexts('', '\n'.repeat(50_001)), null)
})

for (const { name, text, args } of [
  { name: 'once', text: 'a b c', args: { old_text: 'b', new_text: 'x' } },
  { name: 'not at all', text: 'a', args: { old_text: 'b', new_text: 'x' } },
  { name: 'twice without a choice', text: 'b b', args: { old_text: 'b', new_text: 'x' } },
  { name: 'the second', text: 'b b', args: { old_text: 'b', new_text: 'x', occurrence: 2 } },
  { name: 'a third of two', text: 'b b', args: { old_text: 'b', new_text: 'x', occurrence: 3 } },
  { name: 'all', text: 'b b bb', args: { old_text: 'b', new_text: '', occurrence: 0 } },
  { name: 'overlapping', text: 'aaaa', args: { old_text: 'aa', new_text: 'b', occurrence: 0 } },
  { name: 'CRLF', text: 'a\r\nb\r\n', args: { old_text: 'a\nb', new_text: 'x\ny' } },
  { name: 'mixed line ends', text: 'a\r\nb\n', args: { old_text: 'a\nb', new_text: 'x' } },
  { name: 'by the same', text: 'b', args: { old_text: 'b', new_text: 'b' } },
  { name: 'a pattern', text: 'b', args: { old_text: 'b', new_text: '$&$&' } },
]) {
  test(`an edit is foreseen as edit_file makes it: ${name}`, async () => {
    let written: string | null = null
    const workspace = {
      readFile: () => Promise.resolve(Buffer.from(text)),
      writeFile: (path: string, content: string) => {
        written = content
        return Promise.resolve({ path, change: 'modified', added_lines: 0, removed_lines: 0 })
      },
    }
    const context = { workspace, signal: new AbortController().signal }
    const call = { path: 'f', ...args }
    const { exitCode } = await editFileTool.execute(call, context as unknown as ToolContext)
    const foreseen = resultOf(proposedBy({ tool: 'edit_file', args: call }), { text })
    assert.equal('text' in foreseen, exitCode === 0)
    if ('text' in foreseen) assert.equal(foreseen.text, written)
  })
}

for (const [path, cwd, found] of [
  ['a.js', '/w', 'a.js'],
  ['./src//a.js', '/w', 'src/a.js'],
  ['/w/src/../a.js', '/w', 'a.js'],
  ['/wide/a.js', '/w', null],
  ['../a.js', '/w', null],
  ['src/../../a.js', '/w', null],
  ['.', '/w', null],
] as const) {
  test(`${path} in ${cwd} is ${found ?? 'outside'}`, () => {
    assert.equal(pathInFolder(path, cwd), found)
  })
}

test('no argument is hidden because another one is shown', () => {
  const { kind, shown } = proposedBy({
    tool: 'shell', args: { command: 'ls', cmd: 'rm -rf /', timeout_ms: '1', path: 'x' },
  })
  assert.deepEqual([kind, shown], ['command', ['command']])
  const edit = proposedBy({
    tool: 'str_replace', args: { path: 'a', old_str: 'b', new_str: 'c', old_string: 'd' },
  })
  assert.deepEqual([edit.kind, edit.shown], ['replace', ['path', 'old_str', 'new_str']])
  assert.equal(proposedBy({ tool: 'x', args: JSON.parse('{"__proto__": {"command": "ls"}}') }).kind,
    'other')
})

const run = (call_id: string, more: Partial<Choice> = {}): Choice => ({
  call_id, runs: true, args: null, feedback: '', ...more,
})
const no = { runs: false }
for (const { name, choices, answer, label } of [
  {
    name: 'all calls', choices: [run('a'), run('b')],
    answer: { decision: 'approve' }, label: 'Approve calls',
  },
  {
    name: 'all but one, with a reason', choices: [run('a'), run('b', { ...no, feedback: 'why' })],
    answer: { decision: 'approve', edits: { b: { decision: 'reject', feedback: 'why' } } },
    label: 'Approve 1 of 2 calls',
  },
  {
    name: 'one with other arguments', choices: [run('a', { args: { x: 1 } }), run('b')],
    answer: { decision: 'approve', edits: { a: { args: { x: 1 } } } },
    label: 'Approve calls, edited',
  },
  {
    name: 'edited arguments and a reason that do not count',
    choices: [run('a', { feedback: 'left over' }), run('b', { ...no, args: { x: 1 } })],
    answer: { decision: 'approve', edits: { b: { decision: 'reject' } } },
    label: 'Approve 1 of 2 calls',
  },
  {
    name: 'none', choices: [run('a', no), run('b', { ...no, feedback: 'why' })],
    answer: { decision: 'reject', edits: { b: { feedback: 'why' } } },
    label: 'Approve 0 of 2 calls',
  },
] as const) {
  test(`the answer for ${name}`, () => {
    assert.deepEqual(answerOf([...choices]), answer)
    assert.equal(approveLabel([...choices]), label)
  })
}

test('a call whose id is a name of every object is decided like any other', () => {
  const answer = answerOf([run('__proto__', no), run('b')])
  assert.equal(
    JSON.stringify(answer), '{"decision":"approve","edits":{"__proto__":{"decision":"reject"}}}',
  )
})

const DETAILS = { final_state: { goal_achieved: false }, max_iterations: 20 }
const gate = (kind: string, more: Partial<Gate> = {}): Gate => ({
  kind, iteration: 3, calls: [], ...more,
})
const call = (tool: string, args: object = {}) => ({ call_id: tool, tool, args })
for (const [asked, words] of [
  [
    gate('tool', { calls: [
      call('write_file', { path: 'a', content: '' }), call('bash', { command: 'ls' }),
      call('shell', { command: 'ls' }), call('read_file', { path: 'a' }), call('deploy'),
    ] }),
    'The model wants to make 5 calls: 1 writes a file, 2 run commands, 1 reads, 1 calls deploy.',
  ],
  [
    gate('tool', { calls: [call('edit_file', { path: 'a', old_text: 'b', new_text: 'c' })] }),
    'The model wants to make a call that edits a file.',
  ],
  [
    gate('tool', { calls: [call('try_patches', { patches: [{}], command: 'ls' })] }),
    'The model wants to make a call that tries patches.',
  ],
  [
    gate('tool', { calls: [call('try_patches', { patches: [], command: 'ls' })] }),
    'The model wants to make a call that runs a command.',
  ],
  [
    gate('iteration'),
    'The goal is not met yet. If you approve, iteration 4 of 20 begins.',
  ],
  [
    gate('choice', { candidates: [{ status: 'achieved' }, { status: 'failed' }] }),
    '1 of 2 attempts achieved the goal. If you choose it, its changes are the result of the run.',
  ],
] as const) {
  test(`a gate of kind ${asked.kind} asks: ${words}`, () => {
    assert.equal(questionOf(asked, DETAILS), words)
  })
}
