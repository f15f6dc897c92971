/**
 * Redacts records before they are folded and stored.
 *
 * A tool call whose arguments contain a secret, or the mark that replaces one, does not run: with
 * the secret it could not be logged, and with the mark it would write the wrong text. Arguments
 * that run are stored and shown as they run.
 *
 * @module
 */
import { REDACTED } from '../../internal/errors.js'
import type { JsonObject } from '../../internal/json.js'
import type { CallEdit, RecordDraft } from '../events.js'
import type { AssistantMessage, ToolCall } from '../model.js'
import type { Redactor } from '../redaction/redactor.js'
import { areHashed } from '../test-outcomes.js'

type Draft<K extends RecordDraft['kind']> = Extract<RecordDraft, { kind: K }>

/** Redacts a record; the same object if it has no secret. */
export function redactedDraft<D extends RecordDraft>(draft: D, redactor: Redactor): D {
  return redacted(draft, redactor) as D
}

function redacted(draft: RecordDraft, redactor: Redactor): RecordDraft {
  switch (draft.kind) {
    // These hold only numbers, words of the engine, and ids of calls (see `sanitize-turn.ts`).
    case 'run_started':
    case 'run_recovered':
    case 'run_suspended':
    case 'step_start':
    case 'llm_usage':
    case 'iteration_complete':
      return draft
    case 'run_created': {
      // The engine works with what it was asked for; a request with a secret was refused.
      const payload = redactor.value(draft.payload)
      return payload === draft.payload ? draft : { ...draft, payload }
    }
    case 'model_turn':
      return redactedTurn(draft, redactor)
    case 'tool_call': {
      const { tool, args, ...rest } = draft.payload
      const [name, safe] = [redactor.text(tool), safeArgs(args, redactor)]
      if (name === tool && safe === args) return draft
      return { ...draft, payload: { ...rest, tool: name, args: safe } }
    }
    case 'human_check_required': {
      const { calls, ...rest } = draft.payload
      const payload = redactor.value(rest)
      if (calls === undefined) return { ...draft, payload }
      const shown = calls.map((call) => ({ ...call, args: safeArgs(call.args, redactor) }))
      return { ...draft, payload: { ...payload, calls: shown } }
    }
    case 'human_check_response':
      return redactedResponse(draft, redactor)
    case 'setup_ended': {
      // Hashes tell no secret, and one might look like a key.
      const payload = redactor.value(draft.payload)
      return payload === draft.payload ? draft : { ...draft, payload }
    }
    case 'tool_result': {
      // Images are no text.
      const payload = redactor.value(draft.payload)
      return payload === draft.payload ? draft : { ...draft, payload }
    }
    case 'goal_check':
      // A cached verdict was redacted when it was first logged.
      return draft.payload.cached ? draft : redactedCheck(draft, redactor)
    default:
      return parts(draft, redactor)
  }
}

function parts(draft: RecordDraft, redactor: Redactor): RecordDraft {
  const payload = redactor.value(draft.payload)
  if (!('private' in draft))
    return payload === draft.payload ? draft : ({ ...draft, payload } as RecordDraft)
  const hidden = redactor.value(draft.private)
  if (payload === draft.payload && hidden === draft.private) return draft
  return { ...draft, payload, private: hidden } as RecordDraft
}

/** Hashes of tests stay as they are: they tell no secret, and one might look like a key. */
function redactedCheck(draft: Draft<'goal_check'>, redactor: Redactor): RecordDraft {
  const tests = draft.private?.tests
  if (!areHashed(tests)) return parts(draft, redactor)
  const { pass, fail, skip, ...named } = tests.hashed
  const hashed = { ...redactor.value(named), pass, fail, skip }
  const without = { ...draft, private: { ...draft.private!, tests: null } }
  const rest = parts(without, redactor) as typeof without
  return { ...rest, private: { ...rest.private, tests: { hashed } } }
}

/** Arguments of a call that runs stay as they are; those of another one are redacted. */
function safeArgs(args: JsonObject, redactor: Redactor): JsonObject {
  return redactor.findsIn(args) ? redactor.value(args) : args
}

function redactedResponse(
  draft: Draft<'human_check_response'>,
  redactor: Redactor,
): RecordDraft {
  const { edits, ...rest } = draft.payload
  const payload = redactor.value(rest)
  if (edits === undefined) return { ...draft, payload }
  const shown = Object.entries(edits).map(([id, { args, ...edit }]): [string, CallEdit] => [
    id,
    { ...redactor.value(edit), ...(args !== undefined && { args: safeArgs(args, redactor) }) },
  ])
  return { ...draft, payload: { ...payload, edits: Object.fromEntries(shown) } }
}

function redactedTurn(draft: Draft<'model_turn'>, redactor: Redactor): RecordDraft {
  const hidden = draft.private
  const payload = redactor.value(draft.payload)
  if (hidden === undefined) return payload === draft.payload ? draft : { ...draft, payload }
  const message = redactedMessage(hidden.message, redactor)
  const feedback = hidden.feedback === undefined ? undefined : redactor.text(hidden.feedback)
  if (payload === draft.payload && message === hidden.message && feedback === hidden.feedback)
    return draft
  // What was asked has been redacted: it holds what the log has of the answer before.
  const rest = { ...(feedback !== undefined && { feedback }), ...asked(hidden) }
  return { ...draft, payload, private: { message, ...rest } }
}

function asked({ asked: text }: NonNullable<Draft<'model_turn'>['private']>): object {
  return text === undefined ? {} : { asked: text }
}

/** Drops the provider's own parts if a secret was found, since they repeat the text and calls. */
function redactedMessage(message: AssistantMessage, redactor: Redactor): AssistantMessage {
  const text = redactor.text(message.text)
  const found =
    text !== message.text ||
    message.calls.some(({ tool, args }) => redactor.finds(tool) || redactor.findsIn(args)) ||
    (message.parts !== undefined && redactor.findsIn(message.parts.value))
  if (!found) return message
  return {
    role: 'assistant',
    text,
    calls: message.calls.map((call) => redactedCall(call, redactor)),
  }
}

function redactedCall(call: ToolCall, redactor: Redactor): ToolCall {
  const tool = redactor.text(call.tool)
  if (!redactor.findsIn(call.args)) return tool === call.tool ? call : { ...call, tool }
  return { ...call, tool, args: redactor.value(call.args), error: call.error ?? SECRET_IN_CALL }
}

/** Sent to the model in place of running a call that contains a secret. */
const SECRET_IN_CALL =
  `Not run: the arguments hold a key or password, or the mark ${REDACTED} that stands for one. ` +
  'Secrets are not shown and not written here. Change other parts of the file with edit_file, or ' +
  'let the program read the secret from its environment.'
