import {
  NO_USAGE,
  type JsonObject,
  type ModelProvider,
  type ModelRequest,
  type ToolCall,
} from 'runwright/agent'

/** The answer of a judge: a verdict, other calls, or only text. */
export type JudgeAnswer = JsonObject | readonly ToolCall[] | string

const asCalls = (answer: JudgeAnswer): readonly ToolCall[] =>
  typeof answer === 'string'
    ? []
    : Array.isArray(answer)
      ? (answer as readonly ToolCall[])
      : [{ call_id: 'v', tool: 'verdict', args: answer as JsonObject }]

/** A provider `judge` whose model calls `answer` for each turn and records the requests. */
export function judgeProvider(
  answer: (n: number, request: ModelRequest) => JudgeAnswer,
  prices = true,
): { provider: ModelProvider; asked: ModelRequest[] } {
  const asked: ModelRequest[] = []
  const provider: ModelProvider = {
    id: 'judge',
    description: 'a function of the test',
    isLanguageModel: true,
    suggestions: ['j'],
    create: () => ({
      name: 'judge:j',
      isLanguageModel: true,
      contextWindow: null,
      prices: prices ? { input: 10, output: 20, as_of: '2026-01-01' } : null,
      complete: (request) => {
        asked.push(request)
        const said = answer(asked.length - 1, request)
        return Promise.resolve({
          message: {
            role: 'assistant',
            text: typeof said === 'string' ? said : '',
            calls: asCalls(said),
          },
          reasoning: '',
          usage: { ...NO_USAGE, input_tokens: 1_000, output_tokens: 50 },
          stop: 'end',
        })
      },
    }),
  }
  return { provider, asked }
}
