/**
 * The run engine: goal-driven runs with a language model, tools, verifiable goals, human gates and
 * a durable event log. Field names of runs, events and requests are those of the wire.
 *
 * @module
 */
export { RunEngine } from './engine.js'
export type {
  Caller,
  CreateOptions,
  GoalInfo,
  MessageOptions,
  ResumeResult,
  TenantUsage,
  ToolInfo,
} from './engine-calls.js'
export type {
  ApplyResult,
  ChangeRange,
  Checkpoint,
  FileContent,
  FileEntry,
  FileList,
  NetChange,
  NetChanges,
  RestoreResult,
  RunWorkspaces,
  WorkspaceCaller,
} from './checkpoint.js'
export type { ObjectStore, StoredObject } from './object-store.js'
export type { LeftOut, LeftOutReason, Tree, TreeEntry } from './tree.js'
export {
  APPLY_SCHEMA,
  FORK_SCHEMA,
  MESSAGE_SCHEMA,
  RESTORE_SCHEMA,
  UPDATE_SCHEMA,
} from './request/workspace-requests.js'
export type {
  ApplyRequest,
  ForkRequest,
  MessageRequest,
  RestoreRequest,
  RunUpdate,
} from './request/workspace-requests.js'
export type {
  AskedOfGit, CheckedFiles, CheckFile, CheckFiles, Deed, Dependencies, FileGroup, GitState,
  PendingSeal, SealStart,
  StoredSeal,
} from './check-files.js'
export { ENGINE_DEFAULTS } from './config.js'
export type { EngineOptions } from './config.js'
export type { Roots } from './request/roots.js'
export type { HoldoutOption } from './request/holdouts.js'
export type {
  InstructionsOption, RequestedRun, SystemPromptOption,
} from './request/instructions.js'
export type { FrozenInstructions, ProjectInstructions } from './instructions.js'
export type { Holdout, HoldoutRequest, HoldoutTell } from './goals/holdout/held-out-tests.js'
export type { HoldoutStore } from './holdout-store.js'
export type { ModelProvider } from './model-provider.js'
export type { ProviderLimits, ProviderLimitsById } from './models/provider-limits.js'
export type { ResumeAnswer } from './request/gate-answer.js'
export { RESUME_SCHEMA, START_REQUEST_SCHEMA } from './request/start-request.js'
export type { StartRequest } from './request/start-request.js'
export {
  AgentError,
  CheckpointError,
  CursorError,
  DelegationError,
  ExhaustedError,
  FileOperationError,
  type FileOperationFacts,
  ForeignFolderError,
  CwdBusyError,
  EngineClosedError,
  GoalCheckError,
  GoalError,
  IdempotencyError,
  IllegalTransitionError,
  InstructionsError,
  InvalidRequestError,
  McpError,
  ModelError,
  QueueFullError,
  RunStateError,
  StoreError,
  UnknownRunError,
  WorkspaceChangedError,
  WorkspaceError,
  WorkspaceTooLargeError,
} from './errors.js'
export type {
  AgentErrorCode,
  ModelErrorCode,
  ModelErrorOptions,
  StoreErrorCode,
  WorkspaceErrorCode,
} from './errors.js'
export { isTerminal, RECORD_VERSION } from './events.js'
export type {
  AgentEvent,
  Approval,
  ApprovalMode,
  ApprovalRules,
  CallEdit,
  ChangeCounts,
  ChangesState,
  FileOperation,
  GateKind,
  CheckpointReason,
  Compaction,
  Decision,
  EndReason,
  EventFields,
  RecordFields,
  EventKind,
  EventPayloads,
  ForkBase,
  ForkOrigin,
  GatedCall,
  MessageDelivery,
  NodeName,
  PrivatePart,
  PrivatePayloads,
  RunOwner,
  RunRecord,
  RunRequest,
  RunStatus,
  SealedMode,
  ImageInfo,
  SwitchCause,
  WorkspaceMode,
} from './events.js'
export type {
  Attempts, Candidate, ChildEnd, ChildRole, ChildUsage, ChooseBy, Delegation,
} from './run-tree.js'
export { foldHead, summarize } from './log/head.js'
export type {
  AttemptInfo,
  AttemptsInfo,
  FinalState,
  Gate,
  ModelUsage,
  RunDetails,
  RunFailure,
  RunHead,
  RunSummary,
} from './run-details.js'
export type { PlanStatus, PlanStep } from './plan.js'
export { transition } from './log/transitions.js'
export type { Trigger } from './log/transitions.js'
export type { AttributeValue, Span, SpanAttributes, SpanEvent, Tracer } from './tracing/tracing.js'
export type { TraceContext } from './model.js'
export type {
  DeltaPayload,
  EncodedDelta,
  EncodedEvent,
  RunSubscription,
  StreamItem,
  SubscriptionEnd,
} from './log/subscription.js'
export type { ObservedAppend, RunObserver } from './log/observer.js'
export type { RunSort } from '../internal/run-sorts.js'
export type { QuarantinedRun, RunPage, RunQuery, RunStore, StoreDamage } from './store.js'
export { FileStore } from './stores/file/file-store.js'
export type { FileStoreOptions } from './stores/file/file-store.js'
export { MemoryStore } from './stores/memory-store.js'
export type { MemoryStoreOptions } from './stores/memory-store.js'
export { PostgresStore } from './stores/postgres/postgres-store.js'
export type { PostgresStoreOptions } from './stores/postgres/postgres-store.js'
export type {
  PgClient,
  PgNotification,
  PgPool,
  PgQuery,
  PgResult,
} from './stores/postgres/pg-types.js'
export type {
  AbortWish,
  Admission,
  Admitted,
  Claim,
  LeftMessage,
  LogEnd,
  Occupied,
  SharedRuns,
  SharedRunsListener,
} from './shared-store.js'
export type { Retention } from './stores/retention.js'
export { providersFromEnvironment } from './models/environment.js'
export { createHttpProvider } from './models/http-provider.js'
export type { HttpProvider, HttpProviderOptions } from './models/http-provider.js'
export type { ByModel } from './models/per-model.js'
export { HttpModel } from './models/http-model.js'
export type { HttpModelOptions } from './models/http-model.js'
export type {
  ModelAdapter,
  StreamDecoder,
  WireOptions,
  WireRequest,
} from './models/adapter.js'
export type { WireContext } from './models/provider-errors.js'
export { openAiChatAdapter } from './models/openai/chat.js'
export type { OpenAiChatOptions } from './models/openai/chat.js'
export { openAiResponsesAdapter } from './models/openai/responses.js'
export type { OpenAiResponsesOptions } from './models/openai/responses.js'
export { anthropicAdapter } from './models/anthropic/adapter.js'
export type { AnthropicOptions } from './models/anthropic/adapter.js'
export { geminiAdapter } from './models/gemini/adapter.js'
export type { GeminiOptions } from './models/gemini/adapter.js'
export { createModelRegistry } from './models/registry.js'
export type { ModelInfo, ModelRegistry, ModelRegistryOptions } from './models/registry.js'
export type { FolderOffer, OfferedFolder, ResolvedRequest } from './offers.js'
export type { RunOffers } from './request/offers.js'
export type { ReplayStore } from './models/replay.js'
export { retryDelay } from './models/call-retry.js'
export type { RetryPolicy } from './models/call-retry.js'
export { costOf, knownPrices } from './models/pricing.js'
export type {
  AssistantMessage,
  ImagePart,
  Message,
  Model,
  ModelRequest,
  ModelSettings,
  ModelTurn,
  StopReason,
  ToolCall,
  ReasoningEffort,
  RefusedSetting,
  ToolChoice,
  ToolMessage,
  ToolSpec,
  UserMessage,
} from './model.js'
export { NO_USAGE } from './usage.js'
export type { CallUsage, ModelPrices, Usage } from './usage.js'
export type {
  DelegateRequest, DelegateResult, Tool, ToolContext, ToolEffect, ToolFile, ToolOutput,
} from './tool.js'
export type { ToolCommandOptions } from './tool-command.js'
export type { Edited, TextEdit, WorkspaceCopies, WorkspaceCopy } from './workspace-copy.js'
export { headAndTail } from './output.js'
export type { ApproveCall, CallToApprove, RunToApprove } from './approval.js'
export { openMcpServer } from './mcp/open-server.js'
export type { McpServer } from './mcp/server.js'
export type { McpServerBase, McpServerOptions, McpToolInfo } from './mcp/options.js'
export type { McpPromptInfo, McpResourceInfo } from './mcp/resources.js'
export type { McpEndpoint } from './mcp/http.js'
export type { McpAuthorizationRequest, McpOAuthOptions } from './mcp/oauth/options.js'
export type { McpOAuthClient, McpOAuthState, McpTokens, McpTokenStore } from './mcp/oauth/state.js'
export type { McpProcess } from './mcp/stdio.js'
export { defineTool } from './tools/define.js'
export type {
  ObjectValue, RequiredName, SchemaValue, ToolArguments, ToolDefinition, ToolSchema,
  TypedValue,
} from './tools/define.js'
export type { CommandOptions, CommandResult, Executor, IsolatedCopy } from './executor.js'
export { processExecutor } from './executors/process.js'
export type { ExecutorName } from './executors/named.js'
export type { ProcessExecutorOptions } from './executors/process.js'
export { autoExecutor, bubblewrapExecutor, bubblewrapProblem } from './executors/bubblewrap.js'
export type { BubblewrapOptions } from './executors/bubblewrap.js'
export { diffText } from './workspace/diff.js'
export { escapeInvisible } from '../internal/text.js'
export type { TextDiff } from './workspace/diff.js'
export { openWorkspace } from './workspace/open.js'
export type {
  FileChange,
  Workspace,
  WorkspaceEntry,
  WorkspaceOptions,
} from './workspace/workspace.js'
export type {
  GoalBaseline,
  GoalCheckContext,
  GoalDefinition,
  GoalSpec,
  GoalVerdict,
  Assurance,
  HashedTests,
  KeptTests,
  TestCounts,
  TestOutcome,
  TestOutcomes,
  TestReporter,
} from './goal.js'
export { commandGoal } from './goals/command-goal.js'
export type { CommandGoal } from './goals/command-goal.js'
export { checkArguments, checkSchema } from './check-schema.js'
export { toJsonSchema } from './json-schema/standard.js'
export type {
  JsonSchema, JsonSchemaType, SchemaViolation, StandardIssue, StandardResult, StandardSchema,
} from './schema.js'
export type { Clock, Timer } from '../internal/time.js'
export type { JsonObject, JsonValue } from '../internal/json.js'
