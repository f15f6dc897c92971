import { resultQuestion } from '../../conversation/prompts.js'
import { estimateTokens } from '../../conversation/fit.js'
import type { EventPayloads, RecordDraft } from '../../events.js'
import { readResult, RESULT_TOOL, resultTool, type ResultAnswer } from '../../goals/result-goal.js'
import type { RunState } from '../../log/run-state.js'
import { clip } from '../../output.js'
import type { JsonSchema } from '../../schema.js'
import type { StepContext } from '../step-context.js'
import {
  callModel, isMistake, mistakePart, spentRecords, switchAfterError, switchAfterRefusal,
  type TurnRequest,
} from './turn.js'

/** Characters of the provider's message when it could not read what the model gave. */
const MISTAKE_CHARACTERS = 2_000

/**
 * Asks the model once for the result of the run. The answer is appended as a whole, with what came
 * of it: after a crash it is neither lost nor asked for again.
 *
 * @throws {@link ModelError} when the model gave no usable turn after all retries.
 */
export async function askForResult(context: StepContext, iteration: number): Promise<void> {
  const { log } = context
  const { frozen, node, result } = log.state
  const schema = frozen.request.result_schema as JsonSchema
  if (node !== 'evaluate')
    log.note({ kind: 'step_start', iteration, payload: { node: 'evaluate' } })
  const asked = resultQuestion(result?.problem ?? null)
  try {
    const turn = await callModel(context, iteration, requestFor(context, schema, asked))
    if (turn === null) return // nextStep() finds the exhausted budget
    if (await switchAfterRefusal(context, iteration, turn)) return
    const answer = readResult(turn.message, schema, log.redactor)
    await log.append([
      ...spentRecords(log.state, iteration, turn),
      {
        kind: 'model_turn',
        iteration,
        payload: turnPayload(log.state, turn.message.text, turn.stop),
        private: { message: turn.message, asked },
      },
      answerRecord(log.state, iteration, answer),
    ])
  } catch (error) {
    if (!isMistake(error)) return await switchAfterError(context, iteration, error)
    const { name } = context.models.active(log.state)
    const problem = clip(error.message, MISTAKE_CHARACTERS)
    await log.append([
      {
        kind: 'model_turn',
        iteration,
        payload: turnPayload(log.state, '', 'other'),
        private: { ...mistakePart(error, name), asked },
      },
      answerRecord(log.state, iteration, { result: null, problem }),
    ])
  }
}

/**
 * What the call has besides the conversation. Models that can give JSON for a schema do that; for
 * all others, the tools are those of every turn and the one that takes the result, which is forced.
 */
function requestFor({ prompt }: StepContext, schema: JsonSchema, asked: string): TurnRequest {
  const others = prompt.tools.filter(({ name }) => name !== RESULT_TOOL)
  const tool = resultTool(schema)
  const tokens = estimateTokens({ role: 'user', text: JSON.stringify(tool) })
  return {
    prompt: { ...prompt, tools: [...others, tool], tokens: prompt.tokens + tokens },
    more: { toolChoice: { tool: RESULT_TOOL }, result: { schema, tool: RESULT_TOOL } },
    next: () => [{ role: 'user', text: asked }],
  }
}

function turnPayload(
  { turns }: RunState,
  text: string,
  stop: EventPayloads['model_turn']['stop'],
): EventPayloads['model_turn'] {
  return { turn: turns + 1, text, stop, gives_result: true }
}

function answerRecord(
  { result }: RunState,
  iteration: number,
  answer: ResultAnswer,
): RecordDraft {
  const attempt = (result?.attempts ?? 0) + 1
  return { kind: 'result', iteration, payload: { attempt, ...answer } }
}
