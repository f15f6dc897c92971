/** What the waterfall of the dashboard makes of a log: spans, their rows, and the time axis. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { AgentEvent } from 'runwright/agent'

const folder = new URL('../../../lib/server/dashboard/static/', import.meta.url)

interface Span {
  kind: string
  seq: number
  iteration: number
  name: string
  detail: string
  start: number
  end: number | null
  state: string
  tokens: number
  cost: number | null
}
interface Fold {
  readonly all: readonly Span[]
  readonly duration: number
  readonly ended: boolean
  add(events: readonly AgentEvent[]): void
}
interface Group {
  iteration: number
  start: number
  end: number | null
  spans: Span[]
  bad: number
  tokens: number
}

const { Spans, WAITS, RETRIES } = (await import(`${folder.href}spans.js`)) as {
  Spans: new () => Fold
  WAITS: RegExp
  RETRIES: RegExp
}
const { TimeScale, limitOf } = (await import(`${folder.href}time-scale.js`)) as {
  TimeScale: new (spans: readonly Span[], end: number) => {
    readonly breaks: readonly (readonly [number, number])[]
    at(time: number): number
    timeAt(part: number): number
  }
  limitOf(waits: readonly number[], room: number): number
}
const { groupsOf, rowsOf, rangesOf, sumsOf, elapsed, BINS } = (await import(
  `${folder.href}waterfall-rows.js`
)) as {
  groupsOf(spans: readonly Span[]): Group[]
  rowsOf(groups: readonly Group[], isFolded: (n: number) => boolean): { span: Span | null }[]
  rangesOf(spans: readonly Span[], at: (time: number) => number, now: number): [number, number][]
  sumsOf(
    spans: readonly Span[],
    at: (time: number) => number,
  ): { tokens: number[]; cost: number[] }
  elapsed(seconds: number, apart?: number): string
  BINS: number
}

/** Events at seconds from an arbitrary beginning, `[ts, kind, payload, iteration]`. */
type Told = readonly [ts: number, kind: string, payload?: object, iteration?: number]

function log(...told: readonly Told[]): AgentEvent[] {
  return told.map(
    ([ts, kind, payload = {}, iteration = 1], i) =>
      ({ kind, seq: i + 1, ts: 1_700_000_000 + ts, iteration, run_id: 'r', payload }) as never,
  )
}

function fold(...told: readonly Told[]): Fold {
  const spans = new Spans()
  spans.add(log(...told))
  return spans
}

/** Times to a millisecond: those of the log are floats. */
function shown({ all }: Fold): string[] {
  const ms = (time: number | null): string => (time === null ? '…' : String(Math.round(time * 1e3)))
  return all.map(
    ({ kind, name, start, end, state }) => `${kind} ${name} ${ms(start)}-${ms(end)} ${state}`,
  )
}

const usage = (facts: object = {}): object => ({
  input_tokens: 10, output_tokens: 2, cost_usd: 0.5, purpose: 'worker', ...facts,
})
const call = (call_id: string, tool = 'bash', args: object = { command: 'ls\n-l' }): object => ({
  call_id, tool, args,
})
const result = (call_id: string, duration_ms: number, exit_code = 0): object => ({
  call_id, tool: 'bash', output: '', exit_code, duration_ms,
})
const turn = { turn: 1, text: 'I look\nfirst', stop: 'tool_calls' }

test('an iteration is a plan, calls side by side, a further model call and a check', () => {
  const spans = fold(
    [0, 'run_created', {}, 0],
    [0.1, 'run_started', {}, 0],
    [1, 'step_start', { node: 'plan' }],
    [3, 'llm_usage', usage()],
    [3, 'model_turn', turn],
    [3, 'step_start', { node: 'act' }],
    [3, 'tool_call', call('a')],
    [3, 'tool_call', call('b')],
    [3, 'tool_started', { call_id: 'a' }],
    [3, 'tool_started', { call_id: 'b' }],
    [5, 'tool_result', result('a', 2_000)],
    // It was over after half a second: results come in the order of the calls.
    [5, 'tool_result', result('b', 500, 1)],
    [6, 'llm_usage', usage()],
    [6, 'model_turn', { ...turn, text: '' }],
    [6, 'step_start', { node: 'evaluate' }],
    [8, 'goal_check', { achieved: true, reason: 'all pass', duration_ms: 1_500 }],
  )
  assert.deepEqual(shown(spans), [
    'plan Plan 1000-3000 good',
    'tool bash 3000-5000 good',
    'tool bash 3000-3500 bad',
    'model Model 5000-6000 good',
    'check Goal check 6500-8000 good',
  ])
  const [plan, first, , model] = spans.all
  assert.deepEqual([plan!.detail, plan!.tokens, plan!.cost], ['I look', 12, 0.5])
  assert.equal(first!.detail, 'ls')
  // It leads to what the model said, or to its tokens when it said nothing.
  assert.deepEqual([plan!.seq, model!.seq], [5, 13])
})

test('a run that waited for a slot, and one that waits, are queued', () => {
  assert.deepEqual(shown(fold([0, 'run_created'], [9, 'run_started'])), ['wait Queued 0-9000 '])
  assert.deepEqual(shown(fold([0, 'run_created'], [0.01, 'run_started'])), [])
})

test('what goes on now has no end: a model call, a tool, a check, a gate', () => {
  assert.deepEqual(shown(fold([0, 'run_started'], [1, 'step_start', { node: 'plan' }])), [
    'plan Plan 1000-… ',
  ])
  assert.deepEqual(
    shown(fold([0, 'tool_call', call('a')], [1, 'tool_started', { call_id: 'a' }])),
    ['tool bash 1000-… '],
  )
  assert.deepEqual(shown(fold([0, 'step_start', { node: 'evaluate' }])), ['check Goal check 0-… '])
  const gate = { gate_id: 'g', summary: 'Waiting to run: bash' }
  assert.deepEqual(shown(fold([0, 'human_check_required', gate])), ['gate Gate 0-… '])
  const answered = fold(
    [0, 'human_check_required', gate],
    [60, 'human_check_response', { gate_id: 'g', decision: 'reject', decided_by: 'ann' }],
  )
  assert.deepEqual(shown(answered), ['gate Gate 0-60000 bad'])
  assert.equal(answered.all[0]!.detail, 'reject by ann')
})

test('after the last result the model is expected, until the log says otherwise', () => {
  const upTo = [
    [0, 'tool_call', call('a')],
    [0, 'tool_started', { call_id: 'a' }],
    [1, 'tool_result', result('a', 1_000)],
  ] as const
  assert.deepEqual(shown(fold(...upTo)).at(-1), 'model Model 1000-… ')
  const checked = fold(...upTo, [1.1, 'step_start', { node: 'evaluate' }])
  assert.deepEqual(shown(checked).slice(1), ['check Goal check 1100-… '])
})

test('a crash ends what was going on, and the time until the takeover is a wait', () => {
  const crashed = [
    [0, 'tool_call', call('a')],
    [1, 'tool_started', { call_id: 'a' }],
    [3, 'log', { level: 'info', message: 'x' }],
    [600, 'run_recovered', { attempt: 1, in_doubt: ['a'] }],
  ] as const
  const spans = fold(...crashed, [601, 'tool_result', result('a', 0, -1)])
  assert.deepEqual(shown(spans).slice(0, 2), [
    'tool bash 1000-3000 lost',
    'wait Taken over after a crash 3000-600000 ',
  ])
  // A call that may be repeated begins again, and has a bar for each time.
  const repeated = fold(
    ...crashed,
    [601, 'tool_started', { call_id: 'a' }],
    [602, 'tool_result', result('a', 1_000)],
  )
  assert.deepEqual(shown(repeated).slice(0, 3), [
    'tool bash 1000-3000 lost',
    'wait Taken over after a crash 3000-600000 ',
    'tool bash 601000-602000 good',
  ])
})

test('a model call during which the process died is lost, and the next one is its own', () => {
  const spans = fold(
    [0, 'step_start', { node: 'plan' }],
    [4, 'log', { level: 'info', message: 'x' }],
    [50, 'run_recovered', { attempt: 1, in_doubt: [] }],
    [53, 'llm_usage', usage()],
    [53, 'model_turn', turn],
  )
  assert.deepEqual(shown(spans), [
    'plan Plan 0-4000 lost',
    'wait Taken over after a crash 4000-50000 ',
    'plan Plan 50000-53000 good',
  ])
})

test('a stop of the service is a wait until the run goes on; an open gate stays open', () => {
  const spans = fold(
    [0, 'human_check_required', { gate_id: 'g', summary: '' }],
    [5, 'run_suspended'],
    [95, 'step_start', { node: 'plan' }],
  )
  assert.deepEqual(shown(spans), [
    'gate Gate 0-… ', 'wait Service stopped 5000-95000 ', 'plan Plan 95000-… ',
  ])
})

test('what never finished ends with the run, as lost', () => {
  const spans = fold(
    [0, 'tool_call', call('a')],
    [0, 'tool_started', { call_id: 'a' }],
    [1, 'human_check_required', { gate_id: 'g', summary: '' }],
    [2, 'abort_requested', { by: null }],
    [3, 'run_end', { status: 'aborted' }],
  )
  assert.deepEqual(shown(spans), ['tool bash 0-3000 lost', 'gate Gate 1000-3000 lost'])
  assert.equal(spans.ended, true)
  const thinking = fold([0, 'step_start', { node: 'plan' }], [9, 'run_end', { status: 'aborted' }])
  assert.deepEqual(shown(thinking), ['plan Plan 0-9000 lost'])
})

test('each attempt of a model call has a bar, and so has a wait for its provider', () => {
  const spans = fold(
    [0, 'step_start', { node: 'plan' }],
    [1, 'log', { level: 'warn', message: 'model call failed, attempt 1: overloaded; trying again' }],
    [2, 'llm_usage', usage({ failed: true })],
    [2, 'log', { level: 'warn', message: 'model call failed, attempt 2: cut; trying again' }],
    [3, 'log', { level: 'info', message: 'waiting for test: the limit of 5 calls a minute is reached' }],
    [9, 'llm_usage', usage()],
    [9, 'model_turn', turn],
  )
  assert.deepEqual(shown(spans), [
    'plan Plan 0-1000 bad',
    'plan Model, attempt 2 1000-2000 bad',
    'wait Waiting 3000-9000 ',
    'plan Model, attempt 3 2000-9000 good',
  ])
})

test('the texts by which waits and retries are told are those of the engine', () => {
  const source = (name: string): string =>
    readFileSync(fileURLToPath(new URL(`../../../lib/agent/run/${name}`, import.meta.url)), 'utf8')
  const texts: readonly [file: string, part: string, like: RegExp][] = [
    ['run-loop.ts', 'waiting for a slot', WAITS],
    ['machine-pause.ts', 'waiting for the machine', WAITS],
    ['limited-calls.ts', 'waiting for ${id}: the limit of', WAITS],
    ['steps/turn.ts', 'model call failed, attempt ${attempt}', RETRIES],
  ]
  for (const [file, part, like] of texts) {
    assert.ok(source(file).includes(part), `${file} has no "${part}"`)
    assert.match(part.replace(/\$\{attempt\}/, '3').replace(/\$\{id\}/, 'openai'), like)
  }
})

test('the judge and a summary are model calls of their own', () => {
  const judged = fold(
    [0, 'step_start', { node: 'evaluate' }],
    [2, 'llm_usage', usage({ purpose: 'judge' })],
    [3, 'goal_check', { achieved: false, reason: 'no', duration_ms: 3_000 }],
  )
  assert.deepEqual(shown(judged), ['model Judge 0-2000 good', 'check Goal check 0-3000 bad'])
  const shortened = fold(
    [0, 'step_start', { node: 'plan' }],
    [2, 'llm_usage', usage({ purpose: 'summary' })],
    [2, 'conversation_compacted', { turns: 3, summary: 's' }],
    [5, 'llm_usage', usage()],
  )
  assert.deepEqual(shown(shortened), ['model Summary 0-2000 good', 'plan Plan 2000-5000 good'])
})

test('other runs and changes of files last from their start to their end', () => {
  const spans = fold(
    [0, 'attempt_started', { attempt: 1, run_id: 'x', model_name: 'm' }],
    [0, 'attempt_started', { attempt: 2, run_id: 'y', model_name: 'm' }],
    [5, 'attempt_ended', { attempt: 1, run_id: 'x', status: 'achieved', reason: 'ok' }],
    [6, 'files_changing', { operation_id: 'o', operation: 'merge' }],
    [7, 'files_changed', { operation_id: 'o' }],
  )
  assert.deepEqual(shown(spans), [
    'child Attempt 1 0-5000 good', 'child Attempt 2 0-… ', 'files Files: merge 6000-7000 good',
  ])
})

test('clocks that go backwards, and times that are none, give no negative lengths', () => {
  const spans = fold(
    [10, 'step_start', { node: 'plan' }],
    [4, 'llm_usage', usage()],
    [NaN, 'tool_call', call('a')],
    [-Infinity, 'tool_started', { call_id: 'a' }],
    [3, 'tool_result', { ...result('a', 0), duration_ms: -5 }],
    [12, 'goal_check', { achieved: true, reason: '', duration_ms: 1e9 }],
  )
  for (const { start, end, name } of spans.all)
    assert.ok(start >= 0 && (end === null || end >= start), `${name} ${start} ${end}`)
  assert.equal(spans.duration, 2)
})

test('logs of earlier versions, and hostile ones, have spans as far as they go', () => {
  // Without usage, starts, steps, ids or arguments.
  const old = fold(
    [0, 'run_started'],
    [2, 'model_turn', { text: 'hi' }],
    [2, 'tool_call', { tool: 'bash', call_id: 'a' }],
    [5, 'tool_result', result('a', 2_000)],
    [6, 'goal_check', { achieved: false, reason: 'no' }],
    [7, 'run_end', {}],
  )
  assert.deepEqual(shown(old), [
    'model Model 0-2000 good', 'tool bash 3000-5000 good', 'check Goal check 6000-6000 bad',
  ])
  const strange = fold(
    [0, 'tool_result', { call_id: 'none' }],
    [1, 'tool_started', { call_id: 'none' }],
    [1, 'human_check_response', { gate_id: 'none' }],
    [1, 'attempt_ended', { run_id: 'none' }],
    [1, 'llm_usage', {}],
    [1, 'model_turn', {}],
    [1, 'goal_check', {}],
    [1, 'of a newer version', { x: 1 }],
    [1, 'log', { message: 7 }],
  )
  assert.ok(strange.all.length > 0)
})

test('events one by one give the same spans as all at once', () => {
  const events = log(
    [0, 'run_created'],
    [3, 'run_started'],
    [4, 'step_start', { node: 'plan' }],
    [5, 'llm_usage', usage()],
    [5, 'model_turn', turn],
    [5, 'tool_call', call('a')],
    [6, 'tool_started', { call_id: 'a' }],
    [7, 'tool_result', result('a', 1_000)],
    [9, 'run_end', {}],
  )
  const [once, each] = [new Spans(), new Spans()]
  once.add(events)
  for (const event of events) each.add([event])
  assert.deepEqual(each.all, once.all)
})

test('rows are the spans of each iteration below its head, folded or not', () => {
  const spans = fold(
    [0, 'step_start', { node: 'evaluate' }, 0],
    [1, 'goal_check', { achieved: false, reason: '', duration_ms: 500 }, 0],
    [1, 'step_start', { node: 'plan' }, 1],
    [2, 'llm_usage', usage({ cost_usd: null }), 1],
    [2, 'tool_call', call('a'), 1],
    [2, 'tool_started', { call_id: 'a' }, 1],
    [3, 'tool_result', result('a', 1_000, 1), 1],
    [3, 'step_start', { node: 'plan' }, 2],
  )
  const groups = groupsOf(spans.all)
  assert.deepEqual(
    groups.map(({ iteration, start, end, bad, tokens }) => [iteration, start, end, bad, tokens]),
    [[0, 0.5, 1, 0, 0], [1, 1, 3, 1, 12], [2, 3, null, 0, 0]],
  )
  const rows = rowsOf(groups, (iteration) => iteration === 0)
  assert.deepEqual(rows.map(({ span }) => span?.name ?? 'head'), [
    'head', 'head', 'Plan', 'bash', 'head', 'Plan',
  ])
})

const span = (kind: string, start: number, end: number | null, tokens = 0): Span => ({
  ...{ kind, start, end, tokens, cost: tokens / 10 },
  ...{ seq: 1, iteration: 1, name: '', detail: '', state: '' },
})

test('hours at a gate leave at least two thirds of the axis to the work', () => {
  const scale = new TimeScale(
    [span('model', 0, 10), span('gate', 10, 7_210), span('tool', 7_210, 7_230)],
    7_230,
  )
  assert.deepEqual(scale.breaks, [[10, 7_210]])
  const share = 1 - (scale.at(7_210) - scale.at(10))
  assert.ok(Math.abs(share - 2 / 3) < 1e-9, `${share}`)
  for (const time of [0, 5, 10, 100, 7_210, 7_220, 7_230])
    assert.ok(Math.abs(scale.timeAt(scale.at(time)) - time) < 1e-6, `${time}`)
  assert.deepEqual([scale.at(0), scale.at(7_230), scale.at(9e9), scale.at(-5)], [0, 1, 1, 0])
})

test('short waits keep their length, and an axis of waits alone is as it is', () => {
  const short = new TimeScale([span('model', 0, 10), span('model', 12, 20)], 20)
  assert.deepEqual([short.breaks, short.at(12)], [[], 0.6])
  const waits = new TimeScale([span('gate', 0, 100)], 100)
  assert.deepEqual([waits.breaks, waits.at(50)], [[], 0.5])
  const none = new TimeScale([], 0)
  assert.deepEqual([none.at(0), none.at(1), none.timeAt(0.5)], [0, 0, 0])
})

test('the room for waits goes to the short ones first', () => {
  assert.equal(limitOf([1, 1, 100, 100], 12), 5)
  assert.equal(limitOf([1, 2], 3), Infinity)
  assert.equal(limitOf([], 3), Infinity)
})

test('the chart has bounded ranges, and shows what is too small to be seen', () => {
  const many = Array.from({ length: 5_000 }, (_, i) => span('tool', i * 2, i * 2 + 0.01, 10))
  const at = (time: number): number => time / 1e6
  assert.deepEqual(rangesOf(many.slice(0, 1), at, 1e6), [[0, 1]])
  assert.ok(rangesOf(many, (time) => time / 10_000, 1e4).length <= BINS / 2)
  assert.deepEqual(rangesOf([span('gate', 5e5, null)], at, 1e6), [[BINS / 2, BINS]])
  const { tokens, cost } = sumsOf(many, (time) => time / 10_000)
  assert.deepEqual([tokens.length, tokens.at(-1), cost.at(-1)], [BINS, 1, 1])
  assert.ok(tokens.every((sum, i) => i === 0 || sum >= tokens[i - 1]!))
})

test('times of the axis are as exact as they are apart', () => {
  assert.equal(elapsed(2.345, 0.1), '2.35 s')
  assert.equal(elapsed(0, 10), '0 s')
  assert.equal(elapsed(65.4), '1:05')
  assert.equal(elapsed(3_665), '1:01:05')
})

test('ten thousand events take linear time', () => {
  const spans = new Spans()
  const told: Told[] = []
  for (let i = 0; i < 5_000; i++) {
    told.push([i, 'tool_call', call(`c${i}`), 1 + Math.floor(i / 50)])
    told.push([i, 'tool_result', result(`c${i}`, 900), 1 + Math.floor(i / 50)])
  }
  spans.add(log(...told))
  assert.equal(spans.all.length, 5_001)
  assert.equal(groupsOf(spans.all).length, 100)
  assert.ok(new TimeScale(spans.all, spans.duration).at(2_500) > 0.4)
})
