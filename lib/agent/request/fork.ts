/**
 * From a fork request to the first record of the fork: what it takes over of its source, so that
 * the source can go on, change or be deleted.
 *
 * @module
 */
import type { JsonObject } from '../../internal/json.js'
import { uuidV7 } from '../../internal/hash.js'
import {
  CheckpointError,
  InvalidRequestError,
  RunStateError,
  UnknownRunError,
  WorkspaceChangedError,
} from '../errors.js'
import {
  isTerminal,
  type EventPayloads,
  type PrivatePayloads,
  type RunOwner,
  type RunRecord,
} from '../events.js'
import { evidenceOf } from '../goals/evidence.js'
import type { FrozenInstructions } from '../instructions.js'
import { readLog } from '../log/read-log.js'
import type { RunState } from '../log/run-state.js'
import { foldState } from '../log/state.js'
import { withoutParts, type Message } from '../model.js'
import type { RunDetails, RunHead } from '../run-details.js'
import { checkRequest } from '../check-schema.js'
import type { ForkFiles, UseCheckpoint } from './fork-files.js'
import { findForkPoint, type ForkAt, type ForkPoint } from './fork-point.js'
import { forkedInstructions, type InstructionsContext } from './instructions.js'
import { textViolations } from './message.js'
import { resolveForkedRun, type NewFork, type NewRun, type RequestContext } from './new-run.js'
import { lacksSetup } from './setup.js'
import { parseStartRequest, requestAgain, type StartRequest } from './start-request.js'
import { FORK_SCHEMA } from './workspace-requests.js'

/** Records read from the store at once. */
const PAGE = 1_000
/** Tokens of a conversation that a fork takes over at most, for models without a known limit. */
const MAX_TOKENS = 1_000_000

/** A fork request, valid by `FORK_SCHEMA`. */
export type ForkRequest = Partial<
  Omit<StartRequest, 'attempts' | 'goal' | 'check' | 'holdout' | 'images' | 'setup'>
> & {
  readonly at?: ForkAt
  readonly message?: string
}

/** @throws {@link InvalidRequestError} with a violation per invalid field. */
export function parseForkRequest(value: JsonObject): ForkRequest {
  const violations = [...checkRequest(FORK_SCHEMA, value)]
  const request = value as ForkRequest
  if (violations.length === 0 && request.message !== undefined)
    violations.push(...textViolations('/message', request.message))
  if (violations.length > 0) throw new InvalidRequestError(violations)
  return request
}

/** What forking needs of its engine. */
export interface ForkContext extends RequestContext, InstructionsContext {
  /** Null for an engine without checkpoints. */
  readonly files: ForkFiles | null
}

/** Who forks a run. */
export interface Forker {
  readonly owner: RunOwner
  readonly nowMs: number
  readonly use: UseCheckpoint
}

/** A fork, but for what it has in common with every new run. */
export interface ResolvedFork {
  readonly newRun: NewRun
  readonly fork: NewFork
  readonly instructions: FrozenInstructions
}

/**
 * Resolves a fork of the run with this head.
 *
 * @throws as the engine's `fork`.
 */
export async function resolveFork(
  source: RunHead,
  { at = 'end', message, ...given }: ForkRequest,
  context: ForkContext,
  { owner, nowMs, use }: Forker,
): Promise<ResolvedFork> {
  const { details } = source
  const hasEnded = isTerminal(details.status)
  const workspace = given.workspace ?? (details.workspace === 'none' ? 'none' : 'isolated')
  checkWorkspace(details, workspace)
  if (workspace === 'in_place' && !hasEnded) {
    const { run_id, status } = details
    const text = `run ${run_id} is ${status} and works in this folder: fork it isolated`
    throw new RunStateError('live', text)
  }
  const frozen = await frozenOf(context, details.run_id)
  const start = startOf(frozen, details, { ...given, workspace })
  const newRun = await resolveForkedRun(start, frozen.goal, context, owner)
  const isReadAnew = given.project_instructions === true
  const before = frozen.instructions ?? {}
  const instructions =
    await forkedInstructions(newRun.request, before, isReadAnew, newRun.roots, context)
  const point = await findForkPoint(context.store, details.run_id, at)
  await checkFiles(newRun, point, details.run_id, context, use)
  const { evidence, state } = await replayTo(context, details.run_id, point)
  const isEnd = point.kind === 'end'
  // A list of its own says the opposite of one that the source was given.
  const counts = (sent: EventPayloads['user_message']): boolean =>
    given.may_change === undefined || sent.may_change === undefined
  const waiting = state.messages.waiting.map(({ payload }) => payload)
  const unheard = isEnd ? waiting.filter(counts) : []
  const own = { message_id: uuidV7(nowMs), deliver: 'next_turn', by: owner.id } as const
  const messages: EventPayloads['user_message'][] = [...unheard]
  if (message !== undefined) messages.push({ ...own, text: message })
  const applies = appliesFrom(details, state)
  const { plan } = state.head.details
  const isSameFolder = workspace === 'isolated' && newRun.request.cwd === details.cwd
  const isElsewhere = newRun.request.setup !== undefined && newRun.request.cwd !== details.cwd
  const isSameCopy = isEnd && details.changes === 'pending' && isSameFolder
  return {
    newRun,
    instructions,
    fork: {
      forked_from: { run_id: details.run_id, seq: point.seq },
      messages,
      base: {
        messages: conversationAt(state, point, newRun),
        baseline: state.baseline ?? frozen.fork?.baseline ?? null,
        baselineTests: state.baselineTests ?? point.firstTests,
        ...(state.areTestsLate && { late_tests: true }),
        ...(state.seal !== null && { seal: state.seal }),
        checkpoint_id: point.checkpointId,
        ...(isSameFolder && applies !== null && { applies_from: applies }),
        ...(evidence !== null && { evidence }),
        ...(plan !== null && { plan }),
        adopts: isSameCopy && message !== undefined,
        ...((lacksSetup(frozen) || isElsewhere) && { lacks_setup: true }),
      },
    },
  }
}

/** @throws {@link InvalidRequestError} for a folder where the source had none, or none for one. */
function checkWorkspace({ run_id, workspace: before }: RunDetails, workspace: string): void {
  if ((before === 'none') === (workspace === 'none')) return
  const detail =
    before === 'none'
      ? `must be none, or left out: run ${run_id} has no folder`
      : `must not be none: run ${run_id} has a folder`
  throw new InvalidRequestError([{ pointer: '/workspace', detail }])
}

/** Where the changes of an isolated source began that are not in its folder; null for none. */
function appliesFrom(
  { workspace, changes }: RunDetails,
  { frozen, checkpoints }: RunState,
): string | null {
  if (workspace !== 'isolated' || changes === 'applied') return null
  return frozen.fork?.applies_from ?? checkpoints?.start ?? null
}

async function frozenOf(
  { store }: ForkContext,
  runId: string,
): Promise<PrivatePayloads['run_created']> {
  const [first] = await store.read(runId, 0, 1)
  if (first?.kind === 'run_created' && first.private !== undefined) return first.private
  throw new UnknownRunError(runId)
}

/** The start request of the fork: the source's, but for what is given. */
function startOf(
  { request }: PrivatePayloads['run_created'],
  { may_change }: RunDetails,
  given: ForkRequest,
): StartRequest {
  // A fork of a run whose attempts have ended goes on by itself, with the files that it got. That
  // run applied the winner's changes by default: those of its fork wait, unless it says otherwise.
  const { apply: kept, attempts, checkpoints, may_change: _, ...before } = requestAgain(request)
  const apply = attempts === undefined ? kept : undefined
  const isolated = given.workspace === 'isolated'
  return parseStartRequest({
    ...before,
    ...(may_change !== null && { may_change }),
    ...(isolated && apply !== undefined && { apply }),
    ...(!isolated && checkpoints !== undefined && { checkpoints }),
    ...given,
  })
}

/** @throws {@link CheckpointError}; {@link WorkspaceChangedError} */
async function checkFiles(
  { request }: NewRun,
  { checkpointId, kind }: ForkPoint,
  runId: string,
  { files }: ForkContext,
  use: UseCheckpoint,
): Promise<void> {
  if (request.workspace === 'none') return
  const inPlace = request.workspace === undefined
  if (checkpointId === null) {
    if (inPlace && kind === 'end') return
    const text =
      `run ${runId} stored no files at this point; only its end can be forked, ` +
      'with workspace in_place and the folder as it is'
    throw new CheckpointError('not_kept', text)
  }
  if (files === null) {
    const text = 'the host has no checkpoints any more: the files of this point cannot be read'
    throw new CheckpointError('off', text)
  }
  await use(checkpointId)
  if (!inPlace) return
  const paths = await files.differences(request.cwd, checkpointId)
  if (paths.length > 0) throw new WorkspaceChangedError('changed', paths)
}

/** The state of the run at the point, and what it showed until then for a judge. */
async function replayTo(
  { store }: ForkContext,
  runId: string,
  { seq }: ForkPoint,
): Promise<{ readonly evidence: string | null; readonly state: RunState }> {
  let state: RunState | null = null
  const judged: RunRecord[] = []
  for await (const records of readLog(store, runId, PAGE)) {
    const before = records.filter((record) => record.seq <= seq)
    for (const record of before) state = foldState(state, record)
    if (state?.frozen.goal.judge !== undefined) judged.push(...before)
    if (before.length < records.length) break
  }
  if (state === null) throw new UnknownRunError(runId)
  const evidence = judged.length === 0 ? null : evidenceOf(state.frozen.fork, judged)
  return { evidence, state }
}

/** The conversation, as far as the fork's model can get it. */
function conversationAt(
  { conversation, frozen, head }: RunState,
  { kind }: ForkPoint,
  { model, request }: NewRun,
): readonly Message[] {
  if (kind === 'start') return frozen.fork?.messages ?? []
  // What is too long for its model, the fork compacts itself.
  const window = request.compaction === 'summary' ? null : model.contextWindow
  const budget = Math.min(window ?? Infinity, MAX_TOKENS)
  const rest = conversation.kept(budget)
  return request.model_name === head.details.active_model ? rest : rest.map(withoutParts)
}
