import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  newProgress,
  noteCheck,
  noteResult,
  noteTurn,
  resetCounts,
  stuckReason,
  type Progress,
} from '../../../lib/agent/log/progress.js'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

/**
 * One turn as a word: `tool:args=output`, exit code 1 when the output begins with `!`, 130 with `^`;
 * parts joined by `+`.
 */
function take(progress: Progress, turn: string): void {
  const calls = turn.split('+').map((part) => {
    const [, tool = '', args = '', output = ''] = /^(\w+):(\w*)=(.*)$/.exec(part) ?? []
    const exitCode = output.startsWith('!') ? 1 : output.startsWith('^') ? 130 : 0
    return { tool, args: { args }, output, exitCode }
  })
  noteTurn(progress, calls.map(({ tool, args }, i) => ({ call_id: `${i}`, tool, args })), false)
  calls.forEach((call, i) => void noteResult(progress, call, call, i === calls.length - 1))
}

/** The number of these turns after which a run is stuck; null if it never is. */
function stuckAfter(turns: readonly string[]): number | null {
  const progress = newProgress()
  for (const [index, turn] of turns.entries()) {
    take(progress, turn)
    if (stuckReason(progress) !== null) return index + 1
  }
  return null
}

const times = (count: number, ...turns: readonly string[]): string[] =>
  Array.from({ length: count }, () => turns).flat()

for (const { name, turns, after } of [
  { name: 'the same call with the same result', turns: times(9, 'read:a=x'), after: 4 },
  { name: 'the same call that fails in the same way', turns: times(9, 'bash:t=!no'), after: 3 },
  { name: 'a call that is stopped each time', turns: times(9, 'bash:t=^stopped'), after: null },
  {
    name: 'a call that fails beside one that is stopped',
    turns: times(9, 'bash:t=!no+bash:u=^stopped'),
    after: 3,
  },
  {
    name: 'a call that is stopped between others',
    turns: times(9, 'bash:t=!no', 'bash:t=^stopped'),
    after: 5,
  },
  { name: 'the same two calls at once', turns: times(9, 'read:a=x+read:b=y'), after: 4 },
  { name: 'two calls in turn', turns: times(9, 'edit:ab=done', 'edit:ba=done'), after: 6 },
  { name: 'three calls in turn', turns: times(9, 'read:a=x', 'read:b=y', 'read:c=z'), after: 7 },
  {
    name: 'edits that are undone, with a check between',
    turns: times(9, 'edit:ab=ok', 'bash:t=!1', 'edit:ba=ok', 'bash:t=!2'),
    after: 8,
  },
  {
    name: 'outputs that differ in durations only',
    turns: ['bash:t=ok 12 ms', 'bash:t=ok 7.5ms', 'bash:t=ok 3 s', 'bash:t=ok 1 ms'],
    after: 4,
  },
  {
    name: 'a long call, remembered by its hash',
    turns: times(5, `write:${'x'.repeat(999)}=ok`),
    after: 4,
  },
  {
    name: 'a poll whose result changes',
    turns: Array.from({ length: 30 }, (_, i) => `bash:poll=${i} of 30`),
    after: null,
  },
  {
    name: 'a test between edits that differ',
    turns: Array.from({ length: 20 }, (_, i) => [`edit:e${i}=ok`, 'bash:t=!fails']).flat(),
    after: null,
  },
  {
    name: 'reading one file after another',
    turns: Array.from({ length: 30 }, (_, i) => `read:f${i}=same`),
    after: null,
  },
  {
    name: 'a known call beside a new one',
    turns: Array.from({ length: 20 }, (_, i) => `read:a=x+read:f${i}=y`),
    after: null,
  },
]) {
  test(`${name}: ${after === null ? 'not stuck' : `stuck after ${after} turns`}`, () => {
    assert.equal(stuckAfter(turns), after)
  })
}

test('a check with a new reason and the answer of a human reset the counts', () => {
  const progress = newProgress()
  noteCheck(progress, '2 of 3 tests fail (120 ms)')
  for (let i = 0; i < 3; i++) take(progress, 'read:a=x')
  noteCheck(progress, '2 of 3 tests fail (98.5 ms)')
  take(progress, 'read:a=x')
  assert.match(stuckReason(progress) ?? '', /same calls gave the same results 4 times/)
  noteCheck(progress, '1 of 3 tests fails')
  assert.equal(stuckReason(progress), null)
  for (let i = 0; i < 4; i++) take(progress, 'read:a=x')
  assert.notEqual(stuckReason(progress), null)
  noteCheck(progress, '2 of 3 tests fail (1 ms)')
  assert.notEqual(stuckReason(progress), null, 'a repeated reason resets nothing')
  resetCounts(progress)
  assert.equal(stuckReason(progress), null)
})

test('three consecutive unusable turns are enough, not three with a usable one between', () => {
  const progress = newProgress()
  const broken = { call_id: 'c', tool: 'bash', args: {}, error: 'cut off' }
  noteTurn(progress, [], true)
  noteTurn(progress, [broken], false)
  noteTurn(progress, [{ ...broken, error: undefined as never, call_id: 'd' }], false)
  noteTurn(progress, [broken, broken], false)
  noteTurn(progress, [], true)
  assert.equal(stuckReason(progress), null)
  noteTurn(progress, [broken], false)
  assert.match(stuckReason(progress) ?? '', /3 turns of the model in a row could not be used/)
})

test('the memory of results is bounded', () => {
  const progress = newProgress()
  for (let i = 0; i < 5_000; i++) {
    take(progress, `read:f${i}=x`)
    take(progress, `read:a=${i}`)
    noteCheck(progress, `answer ${i}`)
  }
  assert.ok(progress.results.size <= 256)
  assert.ok(progress.checks.size <= 256)
})

test('long calls and outputs are distinguished without being kept', () => {
  const progress = newProgress()
  const long = 'x'.repeat(10_000)
  for (const output of [`${long}1`, `${long}2`, `${long}1`])
    take(progress, `write:${long}=${output}`)
  assert.equal(progress.results.size, 2)
  assert.ok([...progress.results].every((mark) => mark.length < 100))
  assert.equal(progress.repeating, 1)
})

test('a model whose calls cannot be read is stuck after three turns', async (t) => {
  const provider = testProvider(() => ({}))
  const model = provider.create('m')
  const complete: typeof model.complete = async (request) => {
    const turn = await model.complete(request)
    const calls = [{ call_id: '', tool: 'bash', args: {}, error: 'the arguments were cut off' }]
    return { ...turn, message: { ...turn.message, calls } }
  }
  const broken = { ...provider, create: () => ({ ...model, complete }) }
  const { engine } = await openEngine(t, { providers: [broken] })
  const { details } = await runToEnd(engine, { goal: 'shell: false' })
  assert.equal(details.end_reason, 'stuck')
  assert.equal(details.usage.model_calls, 3)
  assert.equal(details.usage.tool_calls, 0)
})

test('without detectStuck, only the other bounds end a repeating run', async (t) => {
  const provider = testProvider(() => ({ calls: [{ tool: 'list_files', args: {} }] }))
  const { engine } = await openEngine(t, {
    providers: [provider],
    maxTurnsPerIteration: 1,
    detectStuck: false,
  })
  const { details } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 9 })
  assert.equal(details.end_reason, 'max_iterations')
})
