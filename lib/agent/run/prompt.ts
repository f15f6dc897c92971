import { frozen } from '../../internal/freeze.js'
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
export function promptOf(
  { frozen: created }: RunState,
  offered: ReadonlyMap<string, Tool>,
): Prompt {
  const system = systemPrompt(created)
  const { tools, text } = offersOf(offered)
  return { system, tools, tokens: estimateTokens({ role: 'user', text: system + text }) }
}

interface Offers {
  readonly tools: readonly ToolSpec[]
  /** The same as JSON. */
  readonly text: string
}

/** Most runs of an engine are offered the same tools. */
const known = new WeakMap<ReadonlyMap<string, Tool>, Offers>()

/** Tools as models are offered them: frozen, because runs share them. */
function offersOf(offered: ReadonlyMap<string, Tool>): Offers {
  const before = known.get(offered)
  if (before !== undefined) return before
  const specs = [...offered.values()].map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }))
  const text = JSON.stringify(specs)
  // A copy: a schema may be an object of the host's.
  const offers = { tools: frozen(JSON.parse(text) as ToolSpec[]), text }
  known.set(offered, offers)
  return offers
}
