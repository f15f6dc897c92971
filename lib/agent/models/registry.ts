/**
 * Resolves the names of models.
 *
 * @module
 */
import { nearestName } from '../../internal/text.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { ModelProvider } from '../model-provider.js'
import { ModelError } from '../errors.js'
import type { Model } from '../model.js'
import { checkAmounts, type ModelPrices } from '../usage.js'
import { replayProvider, type ReplayStore } from './replay.js'
import { scriptedProvider } from './scripted/provider.js'

/** A model that this host offers, for forms. */
export interface ModelInfo {
  readonly name: string
  readonly provider: string
  /** False for programs. */
  readonly is_language_model: boolean
  readonly default: boolean
  readonly description: string
  /** US dollars per million tokens; null for programs, and where the price is not known. */
  readonly prices: ModelPrices | null
  /** Tokens of one call; null for programs, and where that is not known. */
  readonly context_window: number | null
}

/** Options of {@link createModelRegistry}. */
export interface ModelRegistryOptions {
  /** Besides `scripted` and `replay`; the first whose family matches a bare name takes it. */
  readonly providers?: readonly ModelProvider[] | undefined
  /** Models by names of the host's choice, which take precedence over providers. */
  readonly models?: Readonly<Record<string, Model>> | undefined
  /** The model for requests that name none. @defaultValue none: requests must name one */
  readonly defaultModel?: string | undefined
  /** Folder whose files `scripted:<file>` may name. Without it, `scripted:` is unknown. */
  readonly scripts?: string | undefined
  /** Store of the runs that `replay:<run_id>` may name. Without it, `replay:` is unknown. */
  readonly replay?: ReplayStore | undefined
}

const OPTIONS: OptionKinds<ModelRegistryOptions> = {
  providers: 'array', models: 'object', defaultModel: 'string', scripts: 'string',
  replay: 'object',
}

/** Resolves names to models, and lists what it offers. */
export interface ModelRegistry {
  /**
   * Returns the model of that name, or the default model if there is one. A name is a registered
   * name, `provider:model`, or a bare name of a provider's family (`gpt-…`, `claude-…`,
   * `gemini-…`).
   * @throws `ModelError` that lists the known names, and says which may be meant; TypeError for a
   * model whose prices are none; whatever the provider throws.
   */
  resolve(name: string | undefined): Model
  /**
   * The name by which a model is found again, after a restart as well: its own, if that leads to
   * it, or else the one by which it was resolved last.
   */
  nameOf(model: Model): string
  /** The id of the provider whose model that is; null for a registered model and for none. */
  providerOf(name: string): string | null
  /** The models on offer, the default first. Providers accept more names than those listed. */
  list(): readonly ModelInfo[]
}

/** For hosts that have set up no model at all. */
const NO_MODEL =
  'this host has no model: set OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, ' +
  'GEMINI_API_KEY or OLLAMA_HOST, and give the engine ' +
  '`providers: providersFromEnvironment(process.env)`; or, to repair code without a language ' +
  'model, `providers: [repairModel()]` of runwright/repair'

/** Characters of a name for which another one is looked for. */
const MAX_HINTED = 100

/**
 * Creates a registry. It has no models but those of its options, and no default unless
 * `defaultModel` names one.
 *
 * @throws TypeError when two providers have the same id, or an id is not a valid prefix of a name.
 */
export function createModelRegistry(options: ModelRegistryOptions = {}): ModelRegistry {
  checkOptions(options, OPTIONS, 'createModelRegistry()')
  const builtIn = [
    ...(options.scripts === undefined ? [] : [scriptedProvider(options.scripts)]),
    ...(options.replay === undefined ? [] : [replayProvider(options.replay)]),
  ]
  const providers = new Map<string, ModelProvider>()
  for (const provider of [...builtIn, ...(options.providers ?? [])]) {
    checkId(provider.id)
    if (providers.has(provider.id))
      throw new TypeError(`there are two model providers with the id ${provider.id}`)
    providers.set(provider.id, provider)
  }
  return new Registry(
    providers,
    new Map(Object.entries(options.models ?? {})),
    options.defaultModel ?? null,
  )
}

class Registry implements ModelRegistry {
  readonly #providers: ReadonlyMap<string, ModelProvider>
  readonly #models: ReadonlyMap<string, Model>
  readonly #defaultModel: string | null
  /** By which name each model was resolved last: it may call itself something else. */
  readonly #asked = new WeakMap<Model, string>()

  constructor(
    providers: ReadonlyMap<string, ModelProvider>,
    models: ReadonlyMap<string, Model>,
    defaultModel: string | null,
  ) {
    this.#providers = providers
    this.#models = models
    this.#defaultModel = defaultModel
  }

  resolve(given: string | undefined): Model {
    const name = given ?? this.#defaultModel
    if (name === null) throw this.#noDefault()
    const [model, asked] = this.#find(name)
    if (typeof model !== 'object' || model === null) return model
    const prices = model.prices as Model['prices'] | undefined
    if (prices !== null && prices !== undefined) checkAmounts(prices, `prices of ${asked}`)
    this.#asked.set(model, asked)
    return model
  }

  nameOf(model: Model): string {
    const asked = this.#asked.get(model)
    if (asked === undefined || asked === model.name) return model.name
    try {
      return this.#find(model.name)[0].name === model.name ? model.name : asked
    } catch {
      return asked
    }
  }

  /** A model, and its name here. */
  #find(name: string): readonly [model: Model, name: string] {
    const registered = this.#models.get(name)
    if (registered !== undefined) return [registered, name]
    const [provider, model] = this.#providerOf(name) ?? []
    if (provider === undefined || model === undefined || model === '') throw this.#unknown(name)
    return [provider.create(model), `${provider.id}:${model}`]
  }

  providerOf(name: string): string | null {
    return this.#models.has(name) ? null : (this.#providerOf(name)?.[0].id ?? null)
  }

  list(): readonly ModelInfo[] {
    const offered = [...this.#providers.values()].flatMap((provider) =>
      provider.suggestions.map((model) => ({
        name: `${provider.id}:${model}`,
        provider: provider.id,
        is_language_model: provider.isLanguageModel,
        description: provider.description,
      })),
    )
    const registered = [...this.#models].map(([name, model]) => ({
      name,
      provider: 'host',
      is_language_model: model.isLanguageModel,
      description: model.name,
    }))
    const list = [...registered, ...offered]
    const byDefault = this.#defaultModel
    if (byDefault !== null && !list.some(({ name }) => this.#isDefault(name)))
      list.unshift(this.#describeDefault(byDefault))
    return list
      .map((info) => ({
        ...info,
        default: this.#isDefault(info.name),
        ...this.#knownOf(info.name),
      }))
      .sort((a, b) => Number(b.default) - Number(a.default))
  }

  /** Of a model that cannot be made now, because its key is missing, nothing is known. */
  #knownOf(name: string): Pick<ModelInfo, 'prices' | 'context_window'> {
    try {
      const { isLanguageModel, prices, contextWindow } = this.#find(name)[0]
      if (isLanguageModel) return { prices, context_window: contextWindow }
    } catch {
      // A run with it says why.
    }
    return { prices: null, context_window: null }
  }

  #providerOf(name: string): readonly [ModelProvider, string] | undefined {
    const colon = name.indexOf(':')
    const named = colon === -1 ? undefined : this.#providers.get(name.slice(0, colon))
    if (named !== undefined) return [named, name.slice(colon + 1)]
    const family = [...this.#providers.values()].find(
      (provider) => provider.family?.test(name) === true,
    )
    return family === undefined ? undefined : [family, name]
  }

  /** The default may be given as a bare name, while the list has it with its provider's prefix. */
  #isDefault(name: string): boolean {
    const byDefault = this.#defaultModel
    if (name === byDefault || byDefault === null) return name === byDefault
    const [provider, model] = this.#providerOf(byDefault) ?? []
    return (
      !this.#models.has(byDefault) &&
      provider !== undefined &&
      name === `${provider.id}:${model}`
    )
  }

  #describeDefault(name: string): Omit<ModelInfo, 'default' | 'prices' | 'context_window'> {
    const provider = this.#providerOf(name)?.[0]
    return {
      name,
      provider: provider?.id ?? 'unknown',
      is_language_model: provider?.isLanguageModel ?? true,
      description: provider?.description ?? 'not available on this host',
    }
  }

  #known(): string {
    const known = [...this.#models.keys(), ...[...this.#providers.values()].flatMap(namesOf)]
    return known.length === 0 ? '' : `; there are ${known.join(', ')}`
  }

  #noDefault(): ModelError {
    const hasModels = this.#models.size > 0 || [...this.#providers.keys()].some(isSetUp)
    const message = hasModels
      ? `must be given, as this host has no default model${this.#known()}`
      : NO_MODEL
    return new ModelError('ERR_AGENT_MODEL', message, { retryable: false })
  }

  #unknown(name: string): ModelError {
    const shown = JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name)
    const message = `there is no model ${shown} on this host${this.#known()}`
    const meant = this.#nearest(name)
    const hint = meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`
    return new ModelError('ERR_AGENT_MODEL', message + hint, { retryable: false })
  }

  /** The name that is close to one that nothing has; undefined without one. */
  #nearest(name: string): string | undefined {
    if (name.length > MAX_HINTED) return undefined
    const providers = [...this.#providers.values()]
    const open = providers.filter(({ isLanguageModel }) => isLanguageModel).map(({ id }) => id)
    const [prefix = '', ...rest] = name.split(':')
    const model = rest.join(':')
    const provider = nearestName(prefix, open)
    // A provider of language models has more names than it lists.
    if (provider !== undefined && !open.includes(prefix) && model !== '') {
      return `${provider}:${model}`
    }
    const listed = providers.flatMap(({ id, suggestions }) =>
      suggestions.map((suggestion): [string, string] => [suggestion, `${id}:${suggestion}`]),
    )
    const whole = nearestName(name, [...this.#models.keys(), ...listed.map(([, full]) => full)])
    if (whole !== undefined) return whole
    const bare = nearestName(name, listed.map(([suggestion]) => suggestion))
    return listed.find(([suggestion]) => suggestion === bare)?.[1]
  }
}

/** Every engine has the provider of recorded runs. */
function isSetUp(provider: string): boolean {
  return provider !== 'replay'
}

/** A language model provider accepts any name; programs accept only those that they suggest. */
function namesOf({ id, suggestions, isLanguageModel }: ModelProvider): string[] {
  const listed = suggestions.map((name) => `${id}:${name}`)
  return isLanguageModel ? [...listed, `${id}:<model>`] : listed
}

function checkId(id: unknown): void {
  if (typeof id !== 'string' || !/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/.test(id)) {
    throw new TypeError(
      `a model provider's id must be letters, digits, dots and dashes, got ${JSON.stringify(id)}`,
    )
  }
}
