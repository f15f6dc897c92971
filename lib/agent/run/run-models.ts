import type { RunState } from '../log/run-state.js'
import type { Model } from '../model.js'
import type { ModelPrices } from '../usage.js'

/** Makes a model by its frozen name; one that is gone by now fails when it is called. */
export type ModelNamed = (name: string, prices: ModelPrices | null) => Model

/**
 * The models of a run: its own first, then those that take over, in the order of the request. The
 * log says which of them works; the others are made when they are asked for.
 */
export class RunModels {
  readonly #named: ModelNamed
  /** The last one that worked, by the name that the log has of it. */
  #active: { readonly name: string; readonly model: Model } | null = null

  constructor(named: ModelNamed) {
    this.#named = named
  }

  /** The model that works now. */
  active(state: RunState): Model {
    const { active_model: name } = state.head.details
    if (this.#active?.name !== name)
      this.#active = { name, model: this.#named(name, pricesOf(state)) }
    return this.#active.model
  }

  /** Does the model that works now, or one that may take over, take images? */
  takeImages(state: RunState): boolean {
    const later = laterModels(state).map((name) => this.#named(name, null))
    return [this.active(state), ...later].some(({ takesImages }) => takesImages === true)
  }

  /** The largest window among the models that may still take over; null without any. */
  widestLater(state: RunState): number | null {
    const later = laterModels(state)
    if (later.length === 0) return null
    const windows = later.map((name) => this.#named(name, null).contextWindow ?? Infinity)
    return Math.max(...windows)
  }
}

/** The frozen prices of the model that works now. */
export function pricesOf({ frozen, head }: RunState): ModelPrices | null {
  const { active_model: name } = head.details
  const { fallback_models: names = [], model_name: own } = frozen.request
  return name === own ? frozen.prices : (frozen.fallback_prices?.[names.indexOf(name)] ?? null)
}

/** The name of a model as usage records have it; null where no other model can take over. */
export function loggedName({ frozen }: RunState, name: string): string | null {
  return frozen.request.fallback_models === undefined ? null : name
}

/** The name of the model that takes over next; null when there is none left. */
export function nextModel(state: RunState): string | null {
  return laterModels(state)[0] ?? null
}

/** A model that is named twice does not get a second turn: attempts have models of their own. */
function laterModels({ frozen, head }: RunState): readonly string[] {
  const { fallback_models: names = [], model_name: own } = frozen.request
  if (names.length === 0) return names
  const all = [...new Set([own, ...names])]
  return all.slice(all.indexOf(head.details.active_model) + 1)
}
