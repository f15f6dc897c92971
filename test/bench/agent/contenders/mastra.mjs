import { PROMPT, TOKENS, TOOL } from '../task.mjs'
import { peer } from '../../http/peer.mjs'

/** `Agent.generate()` without memory and telemetry, with the evaluation as its stop condition. */
export async function mastra() {
  const { Agent } = await peer('@mastra/core/agent')
  const { createTool } = await peer('@mastra/core/tools')
  const { z } = await peer('zod')
  return {
    async run(task) {
      const turn = () => {
        const { text, callId, args } = task.turn()
        return { text, toolCallId: callId, toolName: TOOL.name, input: JSON.stringify(args) }
      }
      const usage = {
        inputTokens: TOKENS.input,
        outputTokens: TOKENS.output,
        totalTokens: TOKENS.input + TOKENS.output,
      }
      const model = {
        specificationVersion: 'v2',
        provider: 'scripted',
        modelId: 'script',
        supportedUrls: {},
        async doGenerate() {
          const { text, ...call } = turn()
          const content = [{ type: 'text', text }, { type: 'tool-call', ...call }]
          return { content, finishReason: 'tool-calls', usage, warnings: [] }
        },
        async doStream() {
          const { text, ...call } = turn()
          const parts = [
            { type: 'stream-start', warnings: [] },
            { type: 'text-start', id: '1' },
            { type: 'text-delta', id: '1', delta: text },
            { type: 'text-end', id: '1' },
            { type: 'tool-call', ...call },
            { type: 'finish', finishReason: 'tool-calls', usage },
          ]
          return { stream: ReadableStream.from(parts) }
        },
      }
      const lookup = createTool({
        id: TOOL.name,
        description: TOOL.description,
        inputSchema: z.object({ key: z.string() }),
        execute: async ({ context }) => ({ value: task.use(context) }),
      })
      const agent = new Agent({
        name: 'worker',
        instructions: PROMPT,
        model,
        tools: { [TOOL.name]: lookup },
      })
      await agent.generate(PROMPT, { stopWhen: () => task.isOver })
    },
  }
}
