/**
 * Creates runs, new ones and forks: checks what is asked for, recognises repetitions, and stamps
 * the first record.
 *
 * @module
 */
import { cautiousTime, type Clock } from '../../internal/time.js'
import type { JsonObject } from '../../internal/json.js'
import { isStorable, MUST_BE_STORABLE } from '../../internal/text.js'
import { uuidV7 } from '../../internal/hash.js'
import { InvalidRequestError } from '../errors.js'
import type { PrivatePayloads, RunCreated, RunOwner } from '../events.js'
import { newKey } from '../goals/holdout/encrypted.js'
import type { HeldOutTests, HoldoutRequest } from '../goals/holdout/held-out-tests.js'
import type { FrozenInstructions } from '../instructions.js'
import { redactedDraft } from '../log/redacted-draft.js'
import type { RemainingBudget } from '../log/remaining.js'
import type { RunState } from '../log/run-state.js'
import { stamp } from '../log/writer.js'
import type { TraceContext } from '../model.js'
import type { Redactor } from '../redaction/redactor.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { ChildRole } from '../run-tree.js'
import type { DelegateRequest, Tool } from '../tool.js'
import { delegateTool } from '../tools/delegate.js'
import { readTraceContext } from '../tracing/trace-context.js'
import { completeDetails, withFrozen } from './complete-details.js'
import type { UseCheckpoint } from './fork-files.js'
import { type ForkContext, parseForkRequest, resolveFork } from './fork.js'
import { Holdouts, type HoldoutsOptions } from './holdouts.js'
import { repeatedRun } from './idempotency.js'
import { findInstructions } from './instructions.js'
import type { NewChild } from './new-child.js'
import {
  createdRecord, type NewChildPlace, type NewFork, type NewRun, type RequestContext, requestHash,
  type ResolvedRun, resolveNewRun,
} from './new-run.js'
import { ownerOf } from './owner-of.js'
import { lacksSetup } from './setup.js'
import { parseStartRequest, settingsOf, type StartRequest } from './start-request.js'

/** Seconds for which an idempotency key is remembered. */
const KEY_SECONDS = 24 * 3600
/** Detail of the violation when a request contains a secret. */
export const SECRET_IN_REQUEST: string =
  'contains a key or password, which would be logged: ' +
  'let commands read it from a file or an environment variable'
/** Commands for which it is worth looking if packages are installed. */
const MAY_USE_PACKAGES = /\b(?:npm|npx|pnpm|yarn|node_modules)\b/
/** The owner of runs that the host starts itself. */
const HOST: RunOwner = { id: null, tenant: null }

/** A run, and whether the call created it or an earlier one with the same key did. */
export interface CreatedRun {
  readonly details: RunDetails
  readonly created: boolean
}

/** The options of a call that creates a run; see `CreateOptions` of the engine. */
export interface CreationCall {
  readonly caller?: { readonly owner: RunOwner } | undefined
  readonly idempotencyKey?: string | undefined
  readonly parentRunId?: string | undefined
  readonly trace?: TraceContext | undefined
  readonly admit?: (() => void | Promise<void>) | undefined
}

/** Of which run the held-out tests are taken over, and what the request says of some. */
interface AskedHoldout {
  readonly source?: string | undefined
  readonly asked?: HoldoutRequest | undefined
}

/** What creation needs of its engine. */
export interface CreationOptions extends ForkContext, HoldoutsOptions {
  readonly clock: Clock
  readonly redactor: Redactor
  readonly offeredTools: () => ReadonlyMap<string, Tool>
  /** As `RunDriver.begin`; throws when the engine is closed. */
  readonly begin: (
    created: RunCreated,
    keysSince: number,
  ) => Promise<{ readonly head: RunHead; readonly created: boolean }>
}

/** The parts of a run that depend on whether it is a fork. */
interface Resolved {
  readonly newRun: NewRun
  readonly fork?: NewFork
  readonly instructions: FrozenInstructions
}

/** Creates the runs of one engine. */
export class Creation {
  readonly #options: CreationOptions
  readonly #holdouts: Holdouts
  /** For ages: no key is forgotten early because the time of day was set. */
  readonly #now: () => number

  constructor(options: CreationOptions) {
    this.#options = options
    this.#now = cautiousTime(options.clock)
    this.#holdouts = new Holdouts(options)
  }

  /** As `RunEngine.create`; `source` is the run that is repeated, if one is. */
  async create(request: JsonObject, options: CreationCall, source?: string): Promise<CreatedRun> {
    const parsed = parseStartRequest(request)
    // Images are no text.
    const { holdout: asked, images: _, ...open } = parsed
    const holdout = { asked, source }
    const hash = (): string => requestHash(parsed)
    return await this.#once(open, hash, options, holdout, async (owner) => {
      const newRun = await this.#resolve(parsed, owner)
      const { request, roots } = newRun
      const instructions = await findInstructions(request, roots, this.#options, owner)
      return { newRun, instructions }
    })
  }

  /** What a request would begin: checked and resolved as {@link Creation.create} does, no more. */
  async preview(request: JsonObject, owner: RunOwner): Promise<NewRun> {
    const parsed = parseStartRequest(request)
    const { holdout: _held, images: _images, ...open } = parsed
    this.assertNoSecret(open)
    return await this.#resolve(parsed, owner)
  }

  async #resolve(parsed: StartRequest, owner: RunOwner): Promise<ResolvedRun> {
    const newRun = await resolveNewRun(parsed, this.#options, owner)
    const { goal, request } = newRun
    if (request.setup !== undefined || !MAY_USE_PACKAGES.test(goal.command)) return newRun
    const { assertInstalled } = await import('../goals/missing-packages.js')
    await assertInstalled(goal.command, request.cwd)
    return newRun
  }

  /** As `RunEngine.fork`; a repetition is recognised even when its source is gone. */
  async fork(
    runId: string,
    source: Promise<RunHead>,
    request: JsonObject,
    options: CreationCall,
  ): Promise<CreatedRun> {
    source.catch(() => undefined) // the callers that await it get the error
    if (options.idempotencyKey === undefined) await source
    const parsed = parseForkRequest(request)
    const hash = (): string => requestHash({ fork: runId, request: parsed })
    const { clock, files } = this.#options
    const begin = (use: UseCheckpoint): Promise<CreatedRun> =>
      this.#once(parsed, hash, options, { source: runId }, async (owner) =>
        resolveFork(await source, parsed, this.#options, { owner, nowMs: clock.now(), use }),
      )
    return await (files === null ? begin(() => Promise.resolve()) : files.keeping(begin))
  }

  /**
   * Checks what a run asks of another one, within its remaining budget; the function returned
   * begins that, unless it exists, with the files of a checkpoint.
   *
   * @throws as {@link Creation.create} does.
   */
  async child(
    parent: RunState,
    budget: RemainingBudget,
    child: NewChild,
  ): Promise<(checkpointId: string) => Promise<void>> {
    const { offeredTools, store } = this.#options
    const { frozen, head } = parent
    const { asked, role, runId } = child
    const { owner } = head
    this.assertNoSecret(asked)
    const isAttempt = role === 'attempt'
    const newRun = isAttempt
      ? attemptRun(parent, (asked as { model_name: string }).model_name, budget, this.#options)
      : await resolveNewRun(
          delegateStart(parent, asked as DelegateRequest, budget, offeredTools()),
          { ...this.#options, offeredTools: null },
          owner,
        )
    const parentRunId = head.details.run_id
    const source = isAttempt ? parentRunId : undefined
    const hasNone = isAttempt && frozen.holdout === undefined
    const tests = hasNone ? null : await this.#holdouts.of(newRun, undefined, source, owner)
    return async (checkpointId) => {
      if ((await store.head(runId)) !== null) return
      const place = { runId, place: childPlace(parent, role, checkpointId) }
      const call = { parentRunId, trace: frozen.trace }
      const { instructions = {} } = frozen
      const record = this.#stamp({ newRun, instructions }, owner, null, call, tests, place)
      const { holdout } = record.private ?? {}
      const begin = (): ReturnType<CreationOptions['begin']> =>
        this.#options.begin(record, 0)
      await this.#holdouts.keep(runId, tests, holdout, begin)
    }
  }

  /**
   * @throws {@link InvalidRequestError} for a key, or a field of a request, with a secret, and for
   * a key that is not storable.
   */
  assertNoSecret(request: object, idempotencyKey = ''): void {
    const { redactor } = this.#options
    const isSecret = redactor.forbids(idempotencyKey)
    if (isSecret || !isStorable(idempotencyKey)) {
      const detail = `the idempotency key ${isSecret ? SECRET_IN_REQUEST : MUST_BE_STORABLE}`
      throw new InvalidRequestError([{ pointer: '', detail }])
    }
    const secret = Object.entries(request).find(([, value]) => redactor.forbids(value))
    if (secret !== undefined)
      throw new InvalidRequestError([{ pointer: `/${secret[0]}`, detail: SECRET_IN_REQUEST }])
  }

  /** Creates the run unless an earlier call with the same key did. */
  async #once(
    request: object,
    hash: () => string,
    options: CreationCall,
    { asked, source }: AskedHoldout,
    resolve: (owner: RunOwner) => Promise<Resolved>,
  ): Promise<CreatedRun> {
    const { store } = this.#options
    const { idempotencyKey: key } = options
    const owner = ownerOf(options.caller) ?? HOST
    const keysSince = this.#now() / 1000 - KEY_SECONDS
    const idempotency = key === undefined ? null : { key, body_hash: hash() }
    if (idempotency !== null) {
      this.assertNoSecret({}, idempotency.key)
      const first = await store.findByKey(owner, idempotency.key, keysSince)
      const repeated = repeatedRun(first, idempotency.body_hash)
      if (repeated !== null)
        return { details: await completeDetails(store, repeated), created: false }
    }
    this.assertNoSecret(request)
    const resolved = await resolve(owner)
    const { newRun } = resolved
    const tests = await this.#holdouts.of(newRun, asked, source, owner)
    await options.admit?.()
    const record = this.#stamp(resolved, owner, idempotency, options, tests)
    const { run_id } = record
    const begin = (): ReturnType<CreationOptions['begin']> =>
      this.#options.begin(record, keysSince)
    const { holdout } = record.private ?? {}
    const { head, created } = await this.#holdouts.keep(run_id, tests, holdout, begin)
    const details = created
      ? withFrozen(head.details, record.private)
      : await completeDetails(store, head)
    return { details, created }
  }

  #stamp(
    { newRun, fork, instructions }: Resolved,
    owner: RunOwner,
    idempotency: PrivatePayloads['run_created']['idempotency'],
    { parentRunId, trace: given }: CreationCall,
    tests: HeldOutTests | null,
    child?: { readonly runId: string; readonly place: NewChildPlace },
  ): RunCreated {
    const { clock, offeredTools, redactor } = this.#options
    const trace = this.#withoutSecrets(readTraceContext(given ?? {}))
    const tools = [...offeredTools().keys()]
    const more = {
      tools,
      owner,
      idempotency,
      ...(trace !== null && { trace }),
      ...(tests !== null && { holdout: { key: newKey() } }),
      ...(Object.keys(instructions).length > 0 && { instructions }),
    }
    const draft = createdRecord(newRun, parentRunId ?? null, more, fork, child?.place)
    const runId = child?.runId ?? uuidV7(clock.now())
    return stamp(redactedDraft(draft, redactor), runId, 1, clock.now() / 1000)
  }

  /** The context without the caller's own state if that holds a secret. */
  #withoutSecrets(trace: TraceContext | null): TraceContext | null {
    const isClean = trace === null || !this.#options.redactor.forbids(trace.tracestate)
    return isClean ? trace : { ...trace, tracestate: null }
  }
}

/**
 * Runs that other runs start: what they get of their parent.
 */

/** The place of a child in its tree, and what it begins with. */
function childPlace(
  parent: RunState,
  role: ChildRole,
  checkpointId: string,
): NewChildPlace {
  const { root_run_id: rootRunId } = parent.head.details
  // The child finds the files of its parent's goal in its own copy.
  const baseline = role === 'attempt' ? parent.baseline : null
  const lacks = lacksSetup(parent.frozen) && { lacks_setup: true as const }
  const base = { messages: [], baseline, baselineTests: null, checkpoint_id: checkpointId }
  return { rootRunId, role, base: { ...base, adopts: false, ...lacks } }
}

/** An attempt at the goal of its parent. */
function attemptRun(
  { frozen, head }: RunState,
  modelName: string,
  budget: RemainingBudget,
  { resolveModel }: Pick<RequestContext, 'resolveModel'>,
): NewRun {
  const { attempts: _, apply: __, may_change: ___, ...request } = frozen.request
  const { may_change } = head.details
  return {
    request: {
      ...request, ...budget, ...(may_change !== null && { may_change }), model_name: modelName,
      apply: 'manual',
    },
    goal: frozen.goal,
    model: resolveModel(modelName),
    fallbacks: (request.fallback_models ?? []).map(resolveModel),
  }
}

/** The start request of a delegate: what is asked for, within what is left to its parent. */
export function delegateStart(
  { frozen, head }: RunState,
  asked: DelegateRequest,
  left: RemainingBudget,
  offered: ReadonlyMap<string, Tool>,
): StartRequest {
  const { approval, cwd, delegation, hitl_enabled, metadata, model_name, tools } = frozen.request
  const { allow_dependency_changes, compaction = 'drop', instructions } = frozen.request
  const { fallback_models, sealed_checks, setup } = frozen.request
  const { may_change } = head.details
  const delegates = delegation !== undefined && delegation.depth > 1
  const bounds = Object.entries(left).map(([name, most]): [string, number | null] => {
    const wanted = asked[name as keyof RemainingBudget]
    return [name, wanted === undefined ? most : Math.min(wanted, most ?? Infinity)]
  })
  return parseStartRequest({
    cwd,
    approval,
    hitl_enabled,
    metadata,
    model_name,
    ...(fallback_models !== undefined && { fallback_models }),
    ...settingsOf(frozen.request),
    ...asked,
    ...Object.fromEntries(bounds.filter(([, bound]) => bound !== null)),
    workspace: 'isolated',
    apply: 'manual',
    compaction,
    ...(instructions !== undefined && { instructions }),
    ...(sealed_checks !== undefined && { sealed_checks }),
    ...(allow_dependency_changes !== undefined && { allow_dependency_changes }),
    ...(may_change !== null && { may_change }),
    ...(setup !== undefined && { setup }),
    ...(tools !== undefined && { tools: delegates ? tools : withoutDelegate(tools, offered) }),
    ...(delegates && { delegation: { ...delegation, depth: delegation.depth - 1 } }),
  })
}

/** The tools of a run that can't start others. An empty list would mean no tools at all. */
function withoutDelegate(
  tools: readonly string[],
  offered: ReadonlyMap<string, Tool>,
): readonly string[] {
  const rest = tools.filter((name) => offered.get(name) !== delegateTool)
  return rest.length > 0 ? rest : tools
}
