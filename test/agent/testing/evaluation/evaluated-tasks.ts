import {
  MemoryStore,
  RunEngine,
  type EngineOptions,
  type Model,
  type ModelProvider,
} from 'runwright/agent'
import {
  ScriptedModel,
  type EvaluationAttempt,
  type EvaluationOptions,
  type EvaluationTask,
  type ScriptedStep,
} from 'runwright/agent/testing'

const done = { path: 'done', content: 'yes' }
export const good: readonly ScriptedStep[] = [
  { calls: [{ tool: 'write_file', args: done }], usage: { input_tokens: 10, output_tokens: 5 } },
  { text: 'Done.' },
]
const idle: readonly ScriptedStep[] = Array(9).fill({ text: 'I see.' })
export const prices = { input: 1, output: 2, as_of: '2026-01-01' }
export const goal = 'shell: test -f done'

/** A provider `script` with these models. */
export function scripts(models: Readonly<Record<string, () => Model>>): ModelProvider {
  return {
    id: 'script', description: 'scripts', isLanguageModel: false, suggestions: Object.keys(models),
    create: (name) => models[name]!(),
  }
}

const provider = scripts({
  good: () => new ScriptedModel(good, { name: 'script:good', prices }),
  idle: () => new ScriptedModel(idle, { name: 'script:idle', prices }),
  free: () => new ScriptedModel(good, { name: 'script:free', prices: null }),
  broken: () =>
    new ScriptedModel([{ error: { message: 'no such key' } }], {
      name: 'script:broken', prices,
    }),
})

export function open(
  options: Partial<EngineOptions> = {},
): NonNullable<EvaluationOptions['engine']> {
  return (folder) =>
    RunEngine.open({
      store: new MemoryStore(), roots: [folder], providers: [provider], checkpoints: 'off',
      sealedChecks: 'off', defaultModel: 'script:good', ...options,
    })
}

export const task: EvaluationTask = { name: 'done', request: { goal, max_iterations: 2 } }

/** What must not differ between two evaluations of the same. */
export function outcomes(all: readonly EvaluationAttempt[]): string[] {
  return all.map((one) => `${one.task} ${one.model} ${one.attempt}: ${one.outcome}`)
}
