/** What must hold for trees of runs that have ended, whatever happened to their processes. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  WorkspaceError,
  type AgentEvent, type EventKind, type EventPayloads, type RunDetails, type RunEngine,
} from 'runwright/agent'
import { assertInvariants } from '../../helpers/invariants.js'

/** A run that has ended. */
export interface EndedRun {
  readonly details: RunDetails
  readonly log: readonly AgentEvent[]
}

export type EndedRuns = ReadonlyMap<string, EndedRun>

type Of<K extends EventKind> = EventPayloads[K]
type Ended = Of<'attempt_ended'> | Of<'delegate_ended'>

function payloadsOf<K extends EventKind>({ log }: EndedRun, kind: K): readonly Of<K>[] {
  return log.filter((event) => event.kind === kind).map(({ payload }) => payload as Of<K>)
}

/** The ids of the runs that this one has named in its log before it started them. */
export function namedBy(run: EndedRun): readonly string[] {
  const kinds = ['attempt_started', 'delegate_started'] as const
  return kinds.flatMap((kind) => payloadsOf(run, kind)).map(({ run_id }) => run_id)
}

function endsIn(run: EndedRun): readonly Ended[] {
  return [...payloadsOf(run, 'attempt_ended'), ...payloadsOf(run, 'delegate_ended')]
}

/** Every run in the store belongs to a tree, and was named once. */
export function assertNamedOnce(runs: EndedRuns): void {
  const named = [...runs.values()].flatMap((run) => namedBy(run))
  const twice = named.filter((id, i) => named.indexOf(id) !== i)
  assert.deepEqual(twice, [], 'each child is named once')
  const children = [...runs.values()].filter(({ details }) => details.role !== 'root')
  const ids = children.map(({ details }) => details.run_id)
  assert.deepEqual(ids.filter((id) => !named.includes(id)), [], 'each child is named by its parent')
  for (const { details } of children) {
    const parent = runs.get(details.parent_run_id ?? '')
    const isNamed = parent !== undefined && namedBy(parent).includes(details.run_id)
    assert.ok(isNamed, `${details.run_id} is named by its own parent`)
    assert.equal(details.root_run_id, parent.details.root_run_id)
  }
}

/** One run beside its children: ends, order, usage. */
export function assertRun(run: EndedRun, runs: EndedRuns): void {
  assertInvariants(run.log)
  const ends = payloadsOf(run, 'run_end')
  assert.equal(ends.length, 1, 'one run_end')
  const named = namedBy(run)
  const ended = endsIn(run)
  assert.deepEqual(
    ended.map(({ run_id }) => run_id).sort(),
    [...named].sort(),
    `${run.details.run_id}: the end of each child is in the log once`,
  )
  const numbers = [
    ...payloadsOf(run, 'attempt_started').map(({ attempt }) => `${attempt}`),
    ...payloadsOf(run, 'delegate_started').map(({ call_id, number }) => `${call_id} ${number}`),
  ]
  assert.equal(new Set(numbers).size, numbers.length, `${run.details.run_id}: none started twice`)
  const lastTs = run.log.at(-1)?.ts ?? 0
  for (const end of ended) {
    const child = runs.get(end.run_id)
    if (child === undefined) {
      assert.equal(end.status, 'failed', 'a run that never began has failed')
      assert.equal(tokensOf(end.usage), 0)
      continue
    }
    const { details, log } = child
    assert.ok((log.at(-1)?.ts ?? Infinity) <= lastTs, `${end.run_id} has ended before its parent`)
    assert.equal(end.status, details.status, `${end.run_id}: its status, by its parent`)
    assert.equal(tokensOf(end.usage), tokensOf(details.usage), `${end.run_id}: its tokens as well`)
    assert.equal(end.usage.tool_calls, details.usage.tool_calls)
    assert.equal(end.usage.model_calls, details.usage.model_calls)
  }
  const own = payloadsOf(run, 'llm_usage')
  const all = [...own, ...ended.map(({ usage }) => usage)].reduce((n, one) => n + tokensOf(one), 0)
  assert.equal(tokensOf(run.details.usage), all, `${run.details.run_id}: usage adds up`)
  const calls = own.length + ended.reduce((n, { usage }) => n + usage.model_calls, 0)
  assert.equal(run.details.usage.model_calls, calls)
}

type Tokens = { readonly input_tokens: number; readonly output_tokens: number }

function tokensOf({ input_tokens, output_tokens }: Tokens): number {
  return input_tokens + output_tokens
}

/** Attempts: one is chosen exactly if the run achieves its goal, and its changes come once. */
export function assertAttempts(run: EndedRun): void {
  const { details } = run
  const chosen = payloadsOf(run, 'attempt_chosen')
  const applied = payloadsOf(run, 'files_changing')
  if (details.status !== 'achieved') {
    // One that was aborted may have chosen before.
    assert.ok(chosen.length <= 1, 'one is chosen at most')
    assert.ok(applied.length <= 1, 'applied once at most')
    return
  }
  const { run_id } = details
  assert.equal(chosen.length, 1, `${run_id}: one is chosen`)
  assert.equal(applied.length, 1, `${run_id}: its changes are applied once`)
  assert.equal(payloadsOf(run, 'files_changed').length, 1)
  assert.equal(details.changes, 'applied', run_id)
  const winner = payloadsOf(run, 'attempt_ended').find((end) => end.run_id === chosen[0]?.run_id)
  assert.equal(winner?.status, 'achieved', `${run_id}: the winner has achieved the goal`)
  assert.equal(details.attempts?.chosen, chosen[0]?.attempt)
}

/** What runs have in their files in the end. */
export class FinalFiles {
  readonly #engine: RunEngine

  constructor(engine: RunEngine) {
    this.#engine = engine
  }

  /** The lines of a file as the run left it; none where there is no such file. */
  async lines({ details }: EndedRun, path: string): Promise<readonly string[]> {
    const { checkpoint_id, cwd, run_id, workspace } = details
    if (workspace === 'in_place' && details.role === 'root' && details.attempts === null) {
      const at = join(cwd, path)
      return existsSync(at) ? readFileSync(at, 'utf8').split('\n') : []
    }
    if (checkpoint_id === null) return []
    try {
      const options = { raw: true, at: checkpoint_id }
      const { content } = await this.#engine.workspaces.read(run_id, path, options)
      return Buffer.from(content).toString().split('\n')
    } catch (error) {
      if (error instanceof WorkspaceError) return []
      throw error
    }
  }
}

const PATHS = ['a.txt', 'b.txt', 'c.txt', 'd.txt', 'notes.txt', 'shared.txt', 'story.txt']

/** The changes of each delegate that achieved its goal came once, or are named as conflicts. */
export async function assertBroughtBack(
  run: EndedRun,
  runs: EndedRuns,
  files: FinalFiles,
): Promise<void> {
  const merges = payloadsOf(run, 'files_changing').filter(({ operation }) => operation === 'merge')
  const merged = merges.map(({ run_id }) => run_id)
  const { run_id: id } = run.details
  assert.equal(new Set(merged).size, merged.length, `${id}: each delegate is merged once`)
  const skipped = payloadsOf(run, 'files_changed').flatMap((one) => one.skipped)
  assert.deepEqual(skipped, [], `${id}: nothing was skipped`)
  const stopped = new Set(
    payloadsOf(run, 'tool_result').flatMap((one) => (one.exit_code === 130 ? [one.call_id] : [])),
  )
  for (const { run_id, status, conflicts, call_id } of payloadsOf(run, 'delegate_ended')) {
    const child = runs.get(run_id)
    if (child === undefined) continue
    const merge = merges.find((one) => one.run_id === run_id)
    const context = `${run_id} in ${id}`
    if (status !== 'achieved') {
      assert.equal(merge, undefined, `${context}: only what achieves its goal is merged`)
      for (const path of PATHS)
        assert.equal(count(await files.lines(run, path), run_id), 0, `${context}: ${path}`)
      continue
    }
    assert.deepEqual(merge?.conflicts ?? [], conflicts, `${context}: conflicts`)
    for (const path of PATHS) {
      const made = count(await files.lines(child, path), run_id)
      // The model has heard that the call was stopped: nothing comes of it.
      const isLost = merge === undefined && stopped.has(call_id)
      const expected = conflicts.includes(path) || isLost ? 0 : made
      const found = count(await files.lines(run, path), run_id)
      assert.equal(found, expected, `${context}: lines in ${path}`)
    }
  }
}

function count(lines: readonly string[], runId: string): number {
  return lines.filter((line) => line === `line of ${runId}`).length
}

/** Each call of the unsafe tool was durable before it ran, of a run that exists, and ran once. */
export function assertMarks(marks: readonly string[], runs: EndedRuns): void {
  const calls = marks.map((mark) => mark.split(' ') as [runId: string, callId: string])
  const ids = calls.map(([, callId]) => callId)
  assert.deepEqual(ids.filter((id, i) => ids.indexOf(id) !== i), [], 'no unsafe call ran twice')
  for (const [runId, callId] of calls) {
    const run = runs.get(runId)
    assert.ok(run !== undefined, `${runId} is in the store`)
    const started = payloadsOf(run, 'tool_started').some(({ call_id }) => call_id === callId)
    assert.ok(started, `call ${callId} was durable before it ran`)
  }
}
