import { PROMPT, TOKENS, TOOL } from '../task.mjs'
import { peer } from '../../http/peer.mjs'

/** `Runner.run()` without tracing, with the evaluation as its tool-use behaviour. */
export async function openaiAgents() {
  const { Agent, Runner, tool, Usage } = await peer('@openai/agents')
  const runner = new Runner({ tracingDisabled: true })
  return {
    async run(task, length) {
      const model = {
        async getResponse() {
          const { text, callId, args } = task.turn()
          return {
            usage: new Usage({
              requests: 1,
              inputTokens: TOKENS.input,
              outputTokens: TOKENS.output,
              totalTokens: TOKENS.input + TOKENS.output,
            }),
            output: [
              {
                type: 'message',
                role: 'assistant',
                status: 'completed',
                content: [{ type: 'output_text', text }],
              },
              {
                type: 'function_call',
                callId,
                name: TOOL.name,
                arguments: JSON.stringify(args),
                status: 'completed',
              },
            ],
          }
        },
        getStreamedResponse() {
          throw new Error('not streamed')
        },
      }
      const agent = new Agent({
        name: 'worker',
        instructions: PROMPT,
        model,
        tools: [tool({ ...TOOL, strict: true, execute: async (args) => task.use(args) })],
        toolUseBehavior: () =>
          task.isOver ? { isFinalOutput: true, finalOutput: 'over' } : { isFinalOutput: false },
      })
      await runner.run(agent, PROMPT, { maxTurns: length + 1 })
    },
  }
}
