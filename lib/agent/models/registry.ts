/**
 * From the name of a model to the model.
 *
 * @module
 */
import type { ModelProvider } from '../model-provider.js'
import { ModelError } from '../errors.js'
import type { Model } from '../model.js'
import { repairModel } from './repair-model.js'
import { replayProvider, type ReplayStore } from './replay.js'
import { scriptedProvider } from './scripted/provider.js'

/** A model as it is offered to people. */
export interface ModelInfo {
  readonly name: string
  readonly provider: string
  /** False for `builtin:` programs, which are no language models. */
  readonly is_language_model: boolean
  readonly default: boolean
  readonly description: string
}

/** What a registry is made of. */
export interface ModelRegistryOptions {
  /** Providers besides the built-in ones, in the order in which families are tried. */
  readonly providers?: readonly ModelProvider[] | undefined
  /** Ready models under names of the host's choice. */
  readonly models?: Readonly<Record<string, Model>> | undefined
  /** The model of requests that name none. @defaultValue `builtin:repair` */
  readonly defaultModel?: string | undefined
  /** Folder whose files `scripted:<file>` may name. Without it there are no scripted models. */
  readonly scripts?: string | undefined
  /** Where the runs are that `replay:<run_id>` gives again. Without it there are no replays. */
  readonly replay?: ReplayStore | undefined
}

/** Models by name. */
export interface ModelRegistry {
  /**
   * The model of that name, or the default one: a registered name, `provider:model`, or a bare name
   * of a provider's family (`gpt-…`, `claude-…`, `gemini-…`).
   *
   * @throws `ModelError` that lists what is there; what a provider throws about the name.
   */
  resolve(name: string | undefined): Model
  /** What is offered, the default first. Providers take more names than those listed. */
  list(): readonly ModelInfo[]
}

/** The model of requests that name none, when the host names none. */
export const DEFAULT_MODEL = 'builtin:repair'

/**
 * Makes a registry. `builtin:repair` is always there, whatever providers are given, and no provider
 * becomes the default unless it is named.
 *
 * @throws TypeError when two providers have one id, or an id could not stand before a colon.
 */
export function createModelRegistry(options: ModelRegistryOptions = {}): ModelRegistry {
  const builtIn = [
    builtinProvider(),
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
    options.defaultModel ?? DEFAULT_MODEL,
  )
}

class Registry implements ModelRegistry {
  readonly #providers: ReadonlyMap<string, ModelProvider>
  readonly #models: ReadonlyMap<string, Model>
  readonly #defaultModel: string

  constructor(
    providers: ReadonlyMap<string, ModelProvider>,
    models: ReadonlyMap<string, Model>,
    defaultModel: string,
  ) {
    this.#providers = providers
    this.#models = models
    this.#defaultModel = defaultModel
  }

  resolve(name: string | undefined = this.#defaultModel): Model {
    const registered = this.#models.get(name)
    if (registered !== undefined) return registered
    const [provider, model] = this.#providerOf(name) ?? []
    if (provider === undefined || model === undefined || model === '') throw this.#unknown(name)
    return provider.create(model)
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
    if (!list.some(({ name }) => this.#isDefault(name))) list.unshift(this.#describeDefault())
    return list
      .map((info) => ({ ...info, default: this.#isDefault(info.name) }))
      .sort((a, b) => Number(b.default) - Number(a.default))
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

  /** The default may be written as a bare name, and be listed with its provider's. */
  #isDefault(name: string): boolean {
    if (name === this.#defaultModel) return true
    const [provider, model] = this.#providerOf(this.#defaultModel) ?? []
    return (
      !this.#models.has(this.#defaultModel) &&
      provider !== undefined &&
      name === `${provider.id}:${model}`
    )
  }

  #describeDefault(): Omit<ModelInfo, 'default'> {
    const provider = this.#providerOf(this.#defaultModel)?.[0]
    return {
      name: this.#defaultModel,
      provider: provider?.id ?? 'unknown',
      is_language_model: provider?.isLanguageModel ?? true,
      description: provider?.description ?? 'not available on this host',
    }
  }

  #unknown(name: string): ModelError {
    const there = [...this.#models.keys(), ...[...this.#providers.values()].flatMap(namesOf)]
    const shown = JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name)
    const message = `there is no model ${shown} on this host; there are ${there.join(', ')}`
    return new ModelError('ERR_AGENT_MODEL', message, { retryable: false })
  }
}

/** A language model provider takes any name; programs have those that they suggest. */
function namesOf({ id, suggestions, isLanguageModel }: ModelProvider): string[] {
  const listed = suggestions.map((name) => `${id}:${name}`)
  return isLanguageModel ? [...listed, `${id}:<model>`] : listed
}

function checkId(id: string): void {
  if (!/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/.test(id)) {
    throw new TypeError(
      `a model provider's id must be letters, digits, dots and dashes, got ${JSON.stringify(id)}`,
    )
  }
}

function builtinProvider(): ModelProvider {
  return {
    id: 'builtin',
    description: 'Deterministic program repair; no language model, no key, no network',
    isLanguageModel: false,
    suggestions: ['repair'],
    create(name) {
      if (name === 'repair') return repairModel()
      throw new ModelError(
        'ERR_AGENT_MODEL',
        `there is no model builtin:${name}; there is builtin:repair`,
        { retryable: false },
      )
    },
  }
}
