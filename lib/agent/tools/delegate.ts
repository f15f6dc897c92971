import type { JsonObject } from '../../internal/json.js'
import { clip } from '../output.js'
import type { DelegateResult, Tool } from '../tool.js'
import { defineTool } from './define.js'

/** Lets another run do a part of the work. Offered only where host and request allow it. */
export const delegateTool: Tool = defineTool({
  name: 'delegate',
  description:
    'Let another agent do a part of the work in a copy of the project as it is now, and bring ' +
    'its changes back when its goal is achieved. Call it several times in one turn for parts ' +
    'that do not depend on each other: they are worked on at the same time.',
  parameters: {
    type: 'object',
    properties: {
      goal: {
        type: 'string',
        minLength: 1,
        description: 'What to achieve, with all that it must know.',
      },
      check: {
        type: 'string',
        minLength: 1,
        description: 'Shell command that exits with 0 when the goal is achieved.',
      },
      max_iterations: { type: 'integer', minimum: 1, maximum: 1000 },
      result_schema: {
        type: 'object',
        description: 'JSON Schema of an object that it gives as its result, which you then get.',
      },
    },
    required: ['goal'],
  },
  effect: 'idempotent',
  needsFolder: true,
  commands({ goal, check }, commandOfGoal) {
    const command = (check as string | undefined) ?? commandOfGoal(goal as string)
    return command === null ? [] : [command]
  },
  // The log of the run knows which runs the call has started.
  plan: () => Promise.resolve({}),
  verify: () => Promise.resolve('undone'),
  execute: async ({ goal, check, max_iterations, result_schema }, { startRun }) => {
    const result = await startRun({
      goal,
      ...(check !== undefined && { check }),
      ...(max_iterations !== undefined && { max_iterations }),
      ...(result_schema !== undefined && { result_schema: result_schema as JsonObject }),
    })
    return { output: textOf(result), exitCode: result.status === 'achieved' ? 0 : 1 }
  },
})

/** Characters of what the other agent said that are passed on. */
const ANSWER_CHARACTERS = 8_000

function textOf(ended: DelegateResult): string {
  const { run_id, status, reason, changes, conflicts, result, answer } = ended
  const files = changes?.files ?? 0
  const where = `which are in the working directory now${conflicts.length > 0 ? ', except:' : '.'}`
  const achieved = files === 0 ? 'It changed nothing.' : `It changed ${files} files, ${where}`
  const brought = status === 'achieved' ? achieved : 'Its changes were not brought back.'
  return [
    `Run ${run_id} ${status}: ${reason}. ${brought}`,
    ...conflicts.map((path) => `conflict: ${path} was changed here as well and stays as it is`),
    ...(result === null ? [] : [`Its result: ${JSON.stringify(result)}`]),
    ...(answer === '' ? [] : [`It said at last: ${clip(answer, ANSWER_CHARACTERS)}`]),
  ].join('\n')
}
