import type { ModelProvider } from '../model-provider.js'
import type { ModelAdapter } from './adapter.js'
import { HttpModel, type HttpModelOptions } from './http-model.js'

/** Options of {@link createHttpProvider}: those of its models, and what people are shown. */
export interface HttpProviderOptions extends Omit<HttpModelOptions, 'model' | 'name'> {
  /** The part of model names before the colon. */
  readonly id: string
  /** One line for people. @defaultValue the id and the address */
  readonly description?: string | undefined
  /** Names worth offering in a form, without the prefix. */
  readonly suggestions?: readonly string[] | undefined
  /** Bare names that belong to this provider. */
  readonly family?: RegExp | undefined
}

/** A provider that holds connections. */
export interface HttpProvider extends ModelProvider, AsyncDisposable {
  create(name: string): HttpModel
  /** Frees the connections of its models. Calls that go on are cut off. */
  close(): Promise<void>
}

/** Models that are kept with their connections; beyond it the least recently used one is let go. */
const MAX_MODELS = 64

/**
 * A provider that is reached over HTTP, in one of the formats of `openAiChatAdapter`,
 * `openAiResponsesAdapter`, `anthropicAdapter` and `geminiAdapter`; a function chooses by model.
 *
 * @example
 * ```ts
 * const groq = createHttpProvider(openAiChatAdapter(), {
 *   id: 'groq',
 *   baseUrl: 'https://api.groq.com/openai/v1',
 *   apiKey: process.env.GROQ_API_KEY,
 * })
 * ```
 */
export function createHttpProvider(
  adapter: ModelAdapter | ((model: string) => ModelAdapter),
  options: HttpProviderOptions,
): HttpProvider {
  const { id, description, suggestions, family, ...modelOptions } = options
  const models = new Map<string, HttpModel>()
  const adapterOf = typeof adapter === 'function' ? adapter : () => adapter
  const create = (model: string): HttpModel => {
    const made =
      models.get(model) ??
      new HttpModel(adapterOf(model), { ...modelOptions, model, name: `${id}:${model}` })
    models.delete(model)
    models.set(model, made)
    if (models.size > MAX_MODELS) models.delete(models.keys().next().value!)
    return made
  }
  const close = async (): Promise<void> => {
    await Promise.all([...models.values()].map((model) => model.close()))
    models.clear()
  }
  return {
    id,
    description:
      description ?? `${id} (${new URL(options.baseUrl ?? adapterOf('').defaultBaseUrl).host})`,
    isLanguageModel: true,
    suggestions: [...(suggestions ?? [])],
    family,
    create,
    close,
    [Symbol.asyncDispose]: close,
  }
}
