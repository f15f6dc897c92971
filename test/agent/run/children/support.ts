import type { TestContext } from 'node:test'
import {
  MemoryStore,
  NO_USAGE,
  RunEngine,
  type EngineOptions,
  type ModelProvider,
  type ModelRequest,
  type ModelTurn,
} from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { scratch, type Said } from '../../../helpers/engine.js'

/** What a model says: a function of the request and of how many turns it has had in this run. */
export type Brain = (request: ModelRequest, turn: number) => Said | Promise<Said>

/** A provider `test` whose models are functions of their names. */
export function brains(models: Readonly<Record<string, Brain>>): ModelProvider {
  let calls = 0
  return {
    id: 'test',
    description: 'functions of the test',
    isLanguageModel: false,
    suggestions: Object.keys(models),
    create: (name) => ({
      name: `test:${name}`,
      isLanguageModel: false,
      contextWindow: null,
      prices: { input: 1, output: 2, as_of: '2026-01-01' },
      complete: async (request): Promise<ModelTurn> => {
        const turn = request.messages.filter(({ role }) => role === 'assistant').length
        const said = await models[name]!(request, turn)
        const { text = '', calls: asked = [], tokens = [0, 0], stop } = said
        return {
          message: {
            role: 'assistant',
            text,
            calls: asked.map(({ tool, args, call_id }) => ({
              call_id: call_id ?? `c${++calls}`,
              tool,
              args,
            })),
          },
          reasoning: '',
          usage: { ...NO_USAGE, input_tokens: tokens[0], output_tokens: tokens[1] },
          stop: stop ?? (asked.length > 0 ? 'tool_calls' : 'end'),
        }
      },
    }),
  }
}

/** Writes a file with its first turn, and then says that it is done. */
export function writes(path: string, content: string, tokens: Said['tokens'] = [1, 1]): Brain {
  return (_, turn) =>
    turn === 0
      ? { calls: [{ tool: 'write_file', args: { path, content } }], tokens }
      : { text: 'done', tokens }
}

/** An engine whose runs may have children, in a scratch folder; it is closed after the test. */
export async function openFamily(
  t: TestContext,
  models: Readonly<Record<string, Brain>>,
  options: Partial<EngineOptions> & { readonly cwd?: string; readonly copies?: string } = {},
): Promise<{ readonly engine: RunEngine; readonly cwd: string; readonly copies: string }> {
  const { cwd = scratch(t), copies = scratch(t), ...rest } = options
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [cwd],
    sealedChecks: 'off',
    workspaceFolder: copies,
    providers: [brains(models), repairModel()],
    defaultModel: `test:${Object.keys(models)[0]}`,
    delegation: { depth: 3, children: 16 },
    ...rest,
  })
  t.after(() => engine.close())
  return { engine, cwd, copies }
}
