import { estimateTokens } from '../conversation/fit.js'
import { systemPrompt } from '../conversation/prompts.js'
import type { RunState } from '../log/run-state.js'
import type { ToolSpec } from '../model.js'
import type { Tool } from '../tool.js'

/** What every model call of a run begins with, however much of the conversation was dropped. */
export interface Prompt {
  readonly system: string
  readonly tools: readonly ToolSpec[]
  /** Estimated. */
  readonly tokens: number
}

/** The prompt of a run, and the tools that it is offered. */
export function promptOf({ frozen }: RunState, offered: ReadonlyMap<string, Tool>): Prompt {
  const system = systemPrompt(frozen)
  const offers = [...offered.values()].map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }))
  const text = JSON.stringify(offers)
  const tokens = estimateTokens({ role: 'user', text: system + text })
  // A copy: what models get is frozen, and a schema may be an object of the host's.
  return { system, tools: JSON.parse(text) as ToolSpec[], tokens }
}
