import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { ModelProvider } from '../model-provider.js'
import { addEndpoint } from '../redaction/given.js'
import type { ModelAdapter } from './adapter.js'
import { HttpModel, SHARED_OPTIONS, type HttpModelOptions } from './http-model.js'

/** Options of {@link createHttpProvider}: those of its models, and how they are presented. */
export interface HttpProviderOptions extends Omit<HttpModelOptions, 'model' | 'name'> {
  /** The part of model names before the colon. */
  readonly id: string
  /** One line for people. @defaultValue the id and the address */
  readonly description?: string | undefined
  /** Names to offer in a form, without the prefix. */
  readonly suggestions?: readonly string[] | undefined
  /** Matches bare names that belong to this provider. */
  readonly family?: RegExp | undefined
}

const OPTIONS: OptionKinds<HttpProviderOptions> = {
  ...SHARED_OPTIONS, id: 'string! the part of model names before the colon',
  description: 'string', suggestions: 'array', family: 'object',
}

/** A provider whose models hold connections until it is closed. */
export interface HttpProvider extends ModelProvider, AsyncDisposable {
  /** Returns the model of that name, the same instance as before while it is kept. */
  create(name: string): HttpModel
  /** Closes the connections of its models. Calls in progress fail. */
  close(): Promise<void>
}

/** Models kept with their connections; beyond that, the least recently used one is dropped. */
const MAX_MODELS = 64

/**
 * Creates a provider that is reached over HTTP in the format of `adapter`: the result of
 * `openAiChatAdapter`, `openAiResponsesAdapter`, `anthropicAdapter` or `geminiAdapter`, or a
 * function that chooses one by the name of the model.
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
  if (typeof adapter !== 'function' && typeof adapter?.encode !== 'function') {
    throw new TypeError('createHttpProvider() needs an adapter, such as openAiChatAdapter()')
  }
  checkOptions(options, OPTIONS, 'createHttpProvider()')
  const { id, description, suggestions, family, ...modelOptions } = options
  addEndpoint(options)
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
