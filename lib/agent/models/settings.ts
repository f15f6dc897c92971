/**
 * What models of known families take of the settings of a run. Pure: unknown models of compatible
 * servers take everything, and their servers have the last word.
 *
 * @module
 */
import type { ModelSettings, ReasoningEffort, RefusedSetting } from '../model.js'
import type { WireOptions } from './adapter.js'
import {
  bareName, isReasoningModel, refusesTemperature, thinksAdaptively,
} from './known-models.js'

/** Tokens of thinking by effort, for Gemini 2.5, which takes no level. */
const BUDGETS: Readonly<Partial<Record<ReasoningEffort, number>>> = {
  none: 0, minimal: 1_024, low: 1_024, medium: 8_192, high: 24_576,
}

/** The options of a request with the settings of its run, which take precedence. */
export function withSettings<O extends WireOptions>(options: O, settings?: ModelSettings): O {
  if (settings === undefined) return options
  const { temperature, reasoning_effort, max_output_tokens } = settings
  return {
    ...options,
    ...(temperature !== undefined && { temperature }),
    ...(reasoning_effort !== undefined && { reasoningEffort: reasoning_effort }),
    ...(max_output_tokens !== undefined && { maxOutputTokens: max_output_tokens }),
  }
}

/** For both of OpenAI's formats. */
export function refusedByOpenAi(settings: ModelSettings, model: string): RefusedSetting | null {
  const { temperature, reasoning_effort } = settings
  if (temperature !== undefined && isReasoningModel(model)) return refused('temperature', model)
  const plain = /^(?:gpt-[34]|gpt-5[\d.]*-chat|chatgpt-)/.test(bareName(model))
  return reasoning_effort !== undefined && plain ? refused('reasoning_effort', model) : null
}

export function refusedByAnthropic(settings: ModelSettings, model: string): RefusedSetting | null {
  const { temperature, reasoning_effort: effort } = settings
  if (temperature !== undefined && refusesTemperature(model)) return refused('temperature', model)
  if (temperature !== undefined && temperature > 1)
    return { setting: 'temperature', detail: `must be at most 1 for ${model}` }
  if (effort === undefined) return null
  if (!thinksAdaptively(model)) return refused('reasoning_effort', model)
  if (temperature !== undefined)
    return { setting: 'temperature', detail: `cannot be set for ${model} with reasoning_effort` }
  if (effort !== 'none' && effort !== 'minimal') return null
  return among('low, medium, high, xhigh or max', model)
}

export function refusedByGemini(settings: ModelSettings, model: string): RefusedSetting | null {
  const { reasoning_effort: effort } = settings
  if (effort === undefined) return null
  const name = bareName(model)
  if (!/^gemini-2\.5/.test(name)) {
    const isLevel = ['minimal', 'low', 'medium', 'high'].includes(effort)
    return isLevel ? null : among('minimal, low, medium or high', model)
  }
  const isPro = /-pro/.test(name)
  const isKnown = BUDGETS[effort] !== undefined && !(isPro && effort === 'none')
  return isKnown ? null : among(isPro ? 'minimal to high' : 'none to high', model)
}

/** How a Gemini model is told the effort of a run: since Gemini 3 as a level. */
export function geminiThinking(
  effort: ReasoningEffort,
  model: string,
): { readonly thinkingBudget: number } | { readonly thinkingLevel: string } {
  const budget = /^gemini-2\.5/.test(bareName(model)) ? BUDGETS[effort] : undefined
  return budget === undefined ? { thinkingLevel: effort } : { thinkingBudget: budget }
}

function refused(setting: keyof ModelSettings, model: string): RefusedSetting {
  return { setting, detail: `cannot be set for ${model}, which refuses it` }
}

function among(values: string, model: string): RefusedSetting {
  return { setting: 'reasoning_effort', detail: `must be ${values} for ${model}` }
}
