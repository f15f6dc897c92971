/**
 * From a start request to the first record of a run: everything that is decided once, then frozen.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import { canonicalJson, type JsonObject } from '../../internal/json.js'
import { describeError } from '../../internal/errors.js'
import { GoalError, InvalidRequestError, ModelError, WorkspaceError } from '../errors.js'
import type {
  Compaction, EventPayloads, ForkBase, ForkOrigin, PrivatePayloads, RecordDraft, RunOwner,
  RunRequest, WorkspaceMode,
} from '../events.js'
import type { Attempts, ChildRole, Delegation } from '../run-tree.js'
import type { Executor } from '../executor.js'
import type { GoalSpec } from '../goal.js'
import type { GoalRegistry } from '../goals/goal-registry.js'
import type { Model } from '../model.js'
import { ReplayModel } from '../models/replay.js'
import type { RunStore } from '../store.js'
import type { Tool } from '../tool.js'
import type { ModelPrices } from '../usage.js'
import type { NamedFolder } from '../workspace/paths.js'
import { requestedFolder } from './requested-folder.js'
import type { NamedRootsOf } from './roots.js'
import {
  CHOOSE, completeRequest, settingsOf, type ResolvedParts, type StartRequest,
} from './start-request.js'
import { checkToolNames } from './tool-names.js'

export interface RequestContext {
  readonly namedRootsOf: NamedRootsOf
  readonly store: RunStore
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  readonly allowTestChanges: boolean
  readonly judgeModel: string | undefined
  readonly goals: GoalRegistry
  /** Where runs work whose requests do not say so, and what isolated runs need. */
  readonly workspace: WorkspaceMode
  readonly executor: Pick<Executor, 'mountsFolders'>
  /** Null: there are no isolated runs. */
  readonly isolation: { assertFits(cwd: string, mounts: boolean): Promise<void> } | null
  /** Null: runs have no checkpoints. */
  readonly checkpoints: object | null
  /** How far runs may start others; null: not at all. */
  readonly delegation: Delegation | null
  /** For runs whose requests do not say so. */
  readonly compaction: Compaction
  /** The tools that requests may name; null: the names are those of a run that exists. */
  readonly offeredTools: (() => ReadonlyMap<string, Tool>) | null
  /** @throws when no provider has a model of this name; without one, returns the default model. */
  readonly resolveModel: (name: string | undefined) => Model
  /** The name by which a model that was just resolved is found again. */
  readonly nameOfModel: (model: Model) => string
}

/** Runs that a run may start, unless its request or the host says so. */
const CHILDREN = 4

/** The resolved parts of a start request. */
export interface NewRun {
  readonly request: RunRequest
  readonly goal: GoalSpec
  readonly model: Model
  /** The models that may take over. */
  readonly fallbacks: readonly Model[]
}

/** With the folders of which one contains that of the run: a host is asked once for them. */
export interface ResolvedRun extends NewRun {
  readonly roots: readonly string[]
}

/**
 * Resolves the folder, model and goal of a request.
 *
 * @throws {@link InvalidRequestError} that names the field; {@link ForeignFolderError};
 * {@link GoalError}; what the host's `roots` throws.
 */
export async function resolveNewRun(
  start: StartRequest,
  context: RequestContext,
  owner: RunOwner,
): Promise<ResolvedRun> {
  const { allowTestChanges, judgeModel, goals, resolveModel } = context
  checkNames(start, context)
  const { cwd, roots } = await placeOf(start, context, owner)
  const named = await modelOf(start, context, owner)
  const others = await fallbacksOf(start, context, owner)
  const [model, fallbacks] = [named.model, others.map((one) => one.model)]
  checkImages(start, [model, ...fallbacks])
  const parts = await partsOf(start, cwd, named, others, context, owner)
  const request = completeRequest(start, parts)
  const judge = judgeModel === undefined ? null : resolveModel(judgeModel)
  const judgeName = judge === null ? '' : context.nameOfModel(judge)
  const options = {
    check: request.check,
    allowTestChanges,
    judge: judge === null ? null : { model: judgeName, prices: judge.prices },
  }
  const goal = await goals.resolve(request.goal, cwd, options).catch((error: unknown) => {
    throw withModelHint(error, [model, ...fallbacks])
  })
  checkResultGoal(goal, request.result_schema)
  checkFolder(goal, request)
  checkModels(goal, start, [model, ...fallbacks])
  if (goal.judge !== undefined) checkBudget(start, goal.judge.model, goal.judge.prices)
  const { allow_dependency_changes } = request
  const checked = allow_dependency_changes ? { ...goal, runner: [] } : goal
  return { request, goal: checked, model, fallbacks, roots }
}

/**
 * The same for a fork, whose goal and check are those of its source.
 *
 * @throws as {@link resolveNewRun} does.
 */
export async function resolveForkedRun(
  start: StartRequest,
  goal: GoalSpec,
  context: RequestContext,
  owner: RunOwner,
): Promise<ResolvedRun> {
  checkNames(start, context)
  const { cwd, roots } = await placeOf(start, context, owner)
  const named = await modelOf(start, context, owner)
  const others = await fallbacksOf(start, context, owner)
  checkFolder(goal, start)
  checkModels(goal, start, [named, ...others].map((one) => one.model))
  if (goal.judge !== undefined) checkBudget(start, goal.judge.model, goal.judge.prices)
  const parts = await partsOf(start, cwd, named, others, context, owner)
  const [model, fallbacks] = [named.model, others.map((one) => one.model)]
  return { request: completeRequest(start, parts), goal, model, fallbacks, roots }
}

/** @throws {@link InvalidRequestError} for a goal that is met by a result, without a schema. */
function checkResultGoal(goal: GoalSpec, schema: JsonObject | undefined): void {
  if (goal.by_result !== true || schema !== undefined) return
  const detail = 'is needed for the goal result: the JSON Schema of the result that meets it'
  throw new InvalidRequestError([{ pointer: '/result_schema', detail }])
}

/** A goal in free text lacks more than a check if none of the models can reach it. */
function withModelHint(error: unknown, models: readonly Model[]): unknown {
  if (!(error instanceof GoalError) || error.problem !== 'not_verifiable') return error
  const detail = refusalOf(null, false, models)
  if (detail === null) return error
  return new GoalError(error.problem, `${error.message}; with \`check\`, \`model_name\` ${detail}`)
}

/** Why none of the models can reach a goal; null if one may. */
function refusalOf(
  goal: GoalSpec | null,
  givesResult: boolean,
  models: readonly Model[],
): string | null {
  const refusals = models.map((model) => model.refusedGoal?.(goal, { givesResult }) ?? null)
  return refusals.includes(null) ? null : (refusals[0] ?? null)
}

/** @throws {@link InvalidRequestError} when none of the models can reach the goal. */
function checkModels(
  goal: GoalSpec,
  { attempts, result_schema }: StartRequest,
  models: readonly Model[],
): void {
  // Attempts may have other models.
  if (attempts?.models !== undefined) return
  const detail = refusalOf(goal, result_schema !== undefined, models)
  if (detail !== null) throw new InvalidRequestError([{ pointer: '/model_name', detail }])
}

/** Where the run works, and the folders of which one contains that; nowhere without a folder. */
async function placeOf(
  start: StartRequest,
  context: RequestContext,
  owner: RunOwner,
): Promise<{ readonly cwd: string; readonly roots: readonly string[] }> {
  if (start.workspace === 'none') {
    checkNoFolder(start)
    return { cwd: '', roots: [] }
  }
  const roots = await context.namedRootsOf(owner)
  const cwd = await resolveCwd(start.cwd ?? '', roots, context, owner)
  return { cwd, roots: roots.map(({ real }) => real) }
}

export const NEEDS_FOLDER = 'must be left out: a run without a folder has none'

/** What a run without a folder cannot have. */
const OF_FOLDERS = [
  'cwd', 'check', 'apply', 'attempts', 'checkpoints', 'delegation', 'holdout', 'sealed_checks',
  'allow_dependency_changes', 'may_change', 'setup', 'project_instructions',
] as const

/** @throws {@link InvalidRequestError} that names each field which needs a folder. */
function checkNoFolder(start: StartRequest): void {
  const violations = OF_FOLDERS.filter(
    (field) => start[field] !== undefined && start[field] !== false,
  ).map((field) => {
    return { pointer: `/${field}`, detail: NEEDS_FOLDER }
  })
  if (violations.length > 0) throw new InvalidRequestError(violations)
}

/** @throws {@link InvalidRequestError} */
function checkFolder(goal: GoalSpec, { workspace }: Pick<StartRequest, 'workspace'>): void {
  if (workspace !== 'none' || goal.by_result === true) return
  const detail = 'must not be none: only the goal `result: <what to find out>` needs no folder'
  throw new InvalidRequestError([{ pointer: '/workspace', detail }])
}

function checkNames(start: StartRequest, context: RequestContext): void {
  const { offeredTools } = context
  const namesTools = start.tools !== undefined || typeof start.approval === 'object'
  if (namesTools && offeredTools !== null) checkToolNames(start, offeredTools())
}

async function partsOf(
  start: StartRequest,
  cwd: string,
  { name: modelName }: NamedModel,
  others: readonly NamedModel[],
  context: RequestContext,
  owner: RunOwner,
): Promise<ResolvedParts> {
  const attempts = await attemptsOf(start, modelName, context, owner)
  const workspace = await workspaceOf(start, cwd, context)
  const delegation = delegationOf(start, context)
  const compaction = start.compaction ?? context.compaction
  const fallbacks = others.map(({ name }) => name)
  return { cwd, modelName, workspace, attempts, delegation, compaction, fallbacks }
}

/** A model, and the name by which it is found again. */
interface NamedModel {
  readonly name: string
  readonly model: Model
}

async function fallbacksOf(
  start: StartRequest,
  context: RequestContext,
  owner: RunOwner,
): Promise<readonly NamedModel[]> {
  const models: NamedModel[] = []
  for (const [i, name] of start.fallback_models?.entries() ?? []) {
    const asked = { ...start, model_name: name }
    models.push(await modelOf(asked, context, owner, `/fallback_models/${i}`))
  }
  return models
}

/** The attempts with the models that they get. */
async function attemptsOf(
  start: StartRequest,
  modelName: string,
  context: RequestContext,
  owner: RunOwner,
): Promise<Attempts | undefined> {
  if (start.attempts === undefined) return undefined
  const { count, choose = CHOOSE, models: asked } = start.attempts
  const models: string[] = []
  for (const [i, name] of asked?.entries() ?? []) {
    const pointer = `/attempts/models/${i}`
    models.push((await modelOf({ ...start, model_name: name }, context, owner, pointer)).name)
  }
  return { count, models: asked === undefined ? [modelName] : models, choose }
}

function delegationOf(
  { delegation: asked, checkpoints: kept }: StartRequest,
  { delegation: allowed, isolation, checkpoints }: RequestContext,
): Delegation | undefined {
  if (asked === undefined) return undefined
  const refuse = (field: string, detail: string): never => {
    throw new InvalidRequestError([{ pointer: `/delegation${field}`, detail }])
  }
  if (allowed === null) return refuse('', 'is not allowed here: the host must set `delegation`')
  if (process.platform === 'win32' || isolation === null || checkpoints === null)
    refuse('', 'is not possible here: the runs that are started need copies and checkpoints')
  if (kept === 'off') refuse('', 'needs checkpoints, which are off: leave `checkpoints` out')
  const depth = asked.depth ?? 1
  const children = asked.children ?? Math.min(CHILDREN, allowed.children)
  if (depth > allowed.depth) refuse('/depth', `must be at most ${allowed.depth} here`)
  if (children > allowed.children) refuse('/children', `must be at most ${allowed.children} here`)
  return { depth, children }
}

/**
 * Where the run works.
 *
 * @throws {@link InvalidRequestError} when it cannot work there; {@link WorkspaceTooLargeError}.
 */
async function workspaceOf(
  start: StartRequest,
  cwd: string,
  { executor, isolation, checkpoints, workspace: byDefault }: RequestContext,
): Promise<WorkspaceMode> {
  const isParent = start.attempts !== undefined
  const workspace = start.workspace ?? (isParent ? 'isolated' : byDefault)
  const refuse = (field: string, detail: string): never => {
    throw new InvalidRequestError([{ pointer: `/${field}`, detail }])
  }
  if (isParent && workspace === 'in_place')
    refuse('workspace', 'must be isolated for attempts, each of which has a copy of its own')
  if (workspace === 'none') return workspace
  if (workspace === 'in_place')
    return start.apply === 'on_achieved'
      ? refuse('apply', 'needs an isolated workspace')
      : workspace
  const impossible = (why: string): never =>
    isParent
      ? refuse('attempts', `are not possible here, as ${why}: leave them out`)
      : refuse('workspace', `cannot be isolated here, as ${why}: use in_place`)
  if (process.platform === 'win32') impossible('folders are not copied on Windows')
  if (isolation === null) return impossible('the host must set workspaceFolder for that')
  if (checkpoints === null) impossible('the host has no checkpoints')
  if (start.checkpoints === 'off')
    refuse('checkpoints', 'must not be off for an isolated workspace, which is applied by them')
  // A setup writes to packages, which are copied then.
  const mounts = start.setup === undefined && ((await executor.mountsFolders?.()) ?? false)
  await isolation.assertFits(cwd, mounts)
  return workspace
}

async function resolveCwd(
  cwd: string,
  roots: readonly NamedFolder[],
  { closed, store }: RequestContext,
  owner: RunOwner,
): Promise<string> {
  try {
    return await requestedFolder(cwd, roots, owner, { store, closed, allowsRoots: false })
  } catch (error) {
    if (!(error instanceof WorkspaceError)) throw error
    throw new InvalidRequestError([{ pointer: '/cwd', detail: error.message }])
  }
}

async function modelOf(
  start: StartRequest,
  { nameOfModel, resolveModel }: RequestContext,
  owner: RunOwner,
  pointer = '/model_name',
): Promise<NamedModel> {
  let model: Model
  try {
    model = resolveModel(start.model_name)
  } catch (error) {
    const detail = describeError(error)
    throw new InvalidRequestError([{ pointer, detail }])
  }
  const name = nameOfModel(model)
  checkBudget(start, name, model.prices)
  checkSettings(start, model)
  if (model instanceof ReplayModel) await checkReplay(model, owner, pointer)
  return { name, model }
}

/** Runs of other tenants must look like runs that do not exist. */
async function checkReplay(
  model: ReplayModel,
  owner: RunOwner,
  pointer: string,
): Promise<void> {
  try {
    await model.assertVisibleTo(owner)
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    throw new InvalidRequestError([{ pointer, detail: error.message }])
  }
}

function checkSettings(start: StartRequest, model: Model): void {
  const settings = settingsOf(start)
  if (settings === undefined) return
  const [setting] = Object.keys(settings)
  const refused =
    model.refusedSetting === undefined
      ? { setting, detail: `cannot be set for ${model.name}, which takes no settings` }
      : model.refusedSetting(settings)
  if (refused === null) return
  throw new InvalidRequestError([{ pointer: `/${refused.setting}`, detail: refused.detail }])
}

/** Attempts may have other models, which are told what they do not see. */
function checkImages({ attempts, images }: StartRequest, models: readonly Model[]): void {
  if (images === undefined || attempts?.models !== undefined) return
  if (models.some(({ takesImages }) => takesImages === true)) return
  const detail =
    `cannot be seen by ${models[0]?.name}: name another model, or set \`images\` of its provider`
  throw new InvalidRequestError([{ pointer: '/images', detail }])
}

function checkBudget(
  { max_cost_usd }: StartRequest,
  model: string,
  prices: ModelPrices | null,
): void {
  if (max_cost_usd === undefined || prices !== null) return
  const detail = `cannot be enforced: the price of ${model} is unknown; use max_total_tokens`
  throw new InvalidRequestError([{ pointer: '/max_cost_usd', detail }])
}

/** What a fork has besides the parts of every new run. */
export interface NewFork {
  readonly forked_from: ForkOrigin
  /** The messages with which it begins. */
  readonly messages: readonly EventPayloads['user_message'][]
  readonly base: ForkBase
}

/** What a run has besides that another run starts. */
export interface NewChildPlace {
  readonly rootRunId: string
  readonly role: ChildRole
  readonly base: ForkBase
}

/** The draft of the first record of a run. */
export function createdRecord(
  { request, goal, model, fallbacks }: NewRun,
  parentRunId: string | null,
  more: Pick<
    PrivatePayloads['run_created'],
    'tools' | 'owner' | 'idempotency' | 'trace' | 'holdout' | 'instructions'
  >,
  fork?: NewFork,
  child?: NewChildPlace,
): Extract<RecordDraft, { kind: 'run_created' }> {
  const { attempts, cwd, model_name, max_iterations, hitl_enabled, workspace } = request
  return {
    kind: 'run_created',
    iteration: 0,
    payload: {
      goal: request.goal,
      model_name,
      cwd,
      max_iterations,
      hitl_enabled,
      parent_run_id: parentRunId,
      ...(child !== undefined && { root_run_id: child.rootRunId, role: child.role }),
      ...(attempts !== undefined && { attempts }),
      ...(workspace !== undefined && workspace !== 'in_place' && { workspace }),
      ...(fork !== undefined && { forked_from: fork.forked_from }),
      ...(fork !== undefined && fork.messages.length > 0 && { messages: fork.messages }),
    },
    private: {
      request,
      goal,
      prices: model.prices,
      ...(fallbacks.length > 0 && { fallback_prices: fallbacks.map(({ prices }) => prices) }),
      ...more,
      ...(fork !== undefined && { fork: fork.base }),
      ...(child !== undefined && { fork: child.base }),
    },
  }
}

/** A hash that is equal for equal requests, in whatever order their fields are. */
export function requestHash(request: object): string {
  return hash('sha256', canonicalJson(request))
}
