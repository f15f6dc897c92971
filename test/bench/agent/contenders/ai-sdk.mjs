import { PROMPT, TOKENS, TOOL } from '../task.mjs'
import { peer } from '../../http/peer.mjs'

/** `generateText()`, with the evaluation as its stop condition. */
export async function aiSdk() {
  const { generateText, jsonSchema, tool } = await peer('ai')
  return {
    async run(task) {
      const model = {
        specificationVersion: 'v3',
        provider: 'scripted',
        modelId: 'script',
        supportedUrls: {},
        async doGenerate() {
          const { text, callId, args } = task.turn()
          return {
            content: [
              { type: 'text', text },
              {
                type: 'tool-call',
                toolCallId: callId,
                toolName: TOOL.name,
                input: JSON.stringify(args),
              },
            ],
            finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
            usage: {
              inputTokens: {
                total: TOKENS.input,
                noCache: TOKENS.input,
                cacheRead: 0,
                cacheWrite: 0,
              },
              outputTokens: { total: TOKENS.output, text: TOKENS.output, reasoning: 0 },
            },
            warnings: [],
          }
        },
        async doStream() {
          throw new Error('not streamed')
        },
      }
      const { description, parameters } = TOOL
      await generateText({
        model,
        prompt: PROMPT,
        tools: {
          [TOOL.name]: tool({
            description,
            inputSchema: jsonSchema(parameters),
            execute: async (args) => task.use(args),
          }),
        },
        stopWhen: () => task.isOver,
      })
    },
  }
}
