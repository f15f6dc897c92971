import { MAX_STEPS, PLAN_STATUSES, STEP_CHARACTERS, UPDATE_PLAN, type PlanStep } from '../plan.js'
import type { Tool } from '../tool.js'
import { defineTool } from './define.js'

/** `update_plan`: the engine records the steps, which are in the arguments of the call. */
export const updatePlanTool: Tool = defineTool({
  name: UPDATE_PLAN,
  description:
    'Says what you are going to do, for people who watch and for yourself when this ' +
    'conversation gets long. Give all steps each time. Worth it for work of several steps only.',
  parameters: {
    type: 'object',
    properties: {
      steps: {
        type: 'array',
        minItems: 1,
        maxItems: MAX_STEPS,
        items: {
          type: 'object',
          properties: {
            text: { type: 'string', minLength: 1, maxLength: STEP_CHARACTERS },
            status: { type: 'string', enum: PLAN_STATUSES },
          },
          required: ['text', 'status'],
          additionalProperties: false,
        },
      },
    },
    required: ['steps'],
    additionalProperties: false,
  },
  // It changes nothing but what the log says, and may run again.
  effect: 'read',
  needsFolder: true,
  execute: ({ steps }) => {
    const done = (steps as readonly PlanStep[]).filter(({ status }) => status === 'done').length
    return Promise.resolve({ output: `${done} of ${steps.length} steps are done.`, exitCode: 0 })
  },
})
