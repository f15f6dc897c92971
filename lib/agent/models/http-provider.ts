import { checkOptions, describeValue, type OptionKinds } from '../../internal/options.js'
import type { ModelProvider } from '../model-provider.js'
import { addEndpoint } from '../redaction/given.js'
import type { ModelAdapter } from './adapter.js'
import { checkPrices, type ModelPrices } from '../usage.js'
import { HttpModel, SHARED_OPTIONS, type HttpModelOptions } from './http-model.js'
import { valueFor, type ByModel } from './per-model.js'

/** Options of {@link createHttpProvider}: those of its models, and how they are presented. */
export interface HttpProviderOptions
  extends Omit<HttpModelOptions, 'contextWindow' | 'images' | 'model' | 'name' | 'prices'> {
  /** The part of model names before the colon. */
  readonly id: string
  /** One line for people. @defaultValue the id and the address */
  readonly description?: string | undefined
  /** Names to offer in a form, without the prefix. */
  readonly suggestions?: readonly string[] | undefined
  /** Matches bare names that belong to this provider. */
  readonly family?: RegExp | undefined
  /** Of all models, or by names in which `*` stands for any characters: `{ 'gpt-4o*': … }`. */
  readonly prices?: ModelPrices | ByModel<ModelPrices | null> | null | undefined
  /** Likewise. */
  readonly contextWindow?: number | ByModel<number | null> | null | undefined
  /** Likewise. */
  readonly images?: boolean | ByModel<boolean> | undefined
}

const OPTIONS: OptionKinds<HttpProviderOptions> = {
  ...SHARED_OPTIONS, id: 'string! the part of model names before the colon',
  description: 'string', suggestions: 'array', family: 'object', prices: 'any',
  contextWindow: 'any', images: 'any',
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
  const { id, description, suggestions, family, prices, contextWindow, images, ...shared } = options
  const priceOf = pricesOf(prices)
  const windowOf = windowsOf(contextWindow)
  const imagesOf = takersOf(images)
  addEndpoint(options)
  const models = new Map<string, HttpModel>()
  const adapterOf = typeof adapter === 'function' ? adapter : () => adapter
  const create = (model: string): HttpModel => {
    const made =
      models.get(model) ??
      new HttpModel(adapterOf(model), {
        ...shared,
        prices: priceOf(model),
        contextWindow: windowOf(model),
        images: imagesOf(model),
        model,
        name: `${id}:${model}`,
      })
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

/** @throws TypeError that names what is wrong with either, even if no provider gets them. */
export function checkByModel(
  given: Pick<HttpProviderOptions, 'contextWindow' | 'prices'>,
): void {
  pricesOf(given.prices)
  windowsOf(given.contextWindow)
}

type Lookup<T> = (model: string) => T | null | undefined

/** @throws TypeError that names what is wrong with the host's prices. */
function pricesOf(given: HttpProviderOptions['prices']): Lookup<ModelPrices> {
  if (!isByModel(given)) {
    checkPrices(given)
    return () => given
  }
  for (const [pattern, prices] of Object.entries(given))
    checkPrices(prices, `prices[${JSON.stringify(pattern)}]`)
  return (model) => valueFor(given, model)
}

/** The fields of a price are no objects, the values of a map are, or null. */
function isByModel(
  given: HttpProviderOptions['prices'],
): given is ByModel<ModelPrices | null> {
  if (given === undefined || given === null) return false
  const values: unknown[] = Object.values(given)
  return values.length > 0 && values.every((value) => typeof value === 'object')
}

/** @throws TypeError that names what is wrong with the host's windows. */
function windowsOf(given: HttpProviderOptions['contextWindow']): Lookup<number> {
  if (typeof given !== 'object' || given === null) {
    checkWindow('contextWindow', given)
    return () => given
  }
  for (const [pattern, tokens] of Object.entries(given))
    checkWindow(`contextWindow[${JSON.stringify(pattern)}]`, tokens)
  return (model) => valueFor(given, model)
}

/** @throws TypeError that names what is wrong with what the host says of images. */
function takersOf(given: HttpProviderOptions['images']): (model: string) => boolean | undefined {
  if (given === undefined || typeof given === 'boolean') return () => given
  if (typeof given !== 'object' || given === null)
    throw new TypeError(`images must be true, false or a map by model, got ${describeValue(given)}`)
  for (const [pattern, value] of Object.entries(given)) {
    if (typeof value !== 'boolean')
      throw new TypeError(`images[${JSON.stringify(pattern)}] must be true or false`)
  }
  return (model) => valueFor(given, model)
}

function checkWindow(name: string, given: unknown): void {
  if (given === undefined || given === null || typeof given === 'number') return
  throw new TypeError(`${name} must be a number of tokens or null, got ${describeValue(given)}`)
}
