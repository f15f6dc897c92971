/**
 * Limits and features of models by name. Unknown names get cautious values; hosts can override the
 * limits per provider.
 *
 * @module
 */

interface Known {
  /** Matched against the name without the vendor's prefix (`openai/`) and in lower case. */
  readonly name: RegExp
  readonly tokens: number
}

/**
 * Tokens of one request and its answer. For models whose price rises with the length of the
 * prompt, this is the length up to which the price in `pricing.ts` holds.
 */
const WINDOWS: readonly Known[] = [
  { name: /^gpt-5-chat/, tokens: 128_000 },
  { name: /^gpt-[56]/, tokens: 272_000 },
  { name: /^gpt-4\.1/, tokens: 1_000_000 },
  { name: /^gpt-4(?:-\d{4}|$)/, tokens: 8_192 },
  { name: /^gpt-3\.5/, tokens: 16_385 },
  { name: /^gpt-/, tokens: 128_000 },
  { name: /^o[134](?:-|$)/, tokens: 200_000 },
  { name: /^claude-haiku-5-5/, tokens: 100_000 },
  {
    name: /^claude-(?:opus|sonnet)-4-[6-9]|^claude-(?:fable|mythos|opus|sonnet)-5/,
    tokens: 1_000_000,
  },
  { name: /^claude-/, tokens: 200_000 },
  { name: /^gemini-.*-pro/, tokens: 200_000 },
  { name: /^gemini-/, tokens: 1_000_000 },
]

/** Maximum tokens of one answer of Anthropic's models; their API requires a number. */
const OUTPUT_LIMITS: readonly Known[] = [
  { name: /^claude-3-(?:opus|sonnet|haiku)/, tokens: 4_096 },
  { name: /^claude-3-5/, tokens: 8_192 },
  { name: /^claude-/, tokens: 32_000 },
]

/** For unknown models: a limit that even small servers accept. */
const DEFAULT_OUTPUT_LIMIT = 4_096

/** Tokens that fit into one request and its answer; null when not known. */
export function knownContextWindow(model: string): number | null {
  return find(WINDOWS, model)?.tokens ?? null
}

/** The answer limit to send when the host sets none. */
export function knownOutputLimit(model: string): number {
  return find(OUTPUT_LIMITS, model)?.tokens ?? DEFAULT_OUTPUT_LIMIT
}

/** Whether an OpenAI model reasons: it then refuses `temperature` and can return its reasoning. */
export function isReasoningModel(model: string): boolean {
  return /^(?:o\d|gpt-[5-9](?![\d.]*-chat)|codex)/.test(bareName(model))
}

/** Whether an Anthropic model takes an effort for its thinking instead of a token budget. */
export function thinksAdaptively(model: string): boolean {
  return /^claude-(?:(?:opus|sonnet|haiku)-4-[6-9]|[a-z]+-[5-9])/.test(bareName(model))
}

/** Whether an Anthropic model refuses `temperature`. */
export function refusesTemperature(model: string): boolean {
  return /^claude-(?:(?:opus|sonnet|haiku)-4-[7-9]|[a-z]+-[5-9])/.test(bareName(model))
}

/** Whether a model is known to take images. */
export function takesImages(model: string): boolean {
  const name = bareName(model)
  if (/^(?:claude-|gemini-|chatgpt-4o)/.test(name)) return true
  return /^(?:gpt-4o|gpt-4\.[1-9]|gpt-4-turbo|gpt-[5-9]|o1(?!-(?:mini|preview))|o3(?!-mini)|o4)/
    .test(name)
}

/** Whether an Anthropic model refuses that its next call of a tool is forced. */
export function refusesForcedCalls(model: string): boolean {
  const refusing = /^claude-(?:fable|mythos|(?:opus|sonnet)-(?:5-[5-9](?!\d)|[6-9](?!\d)))/
  return refusing.test(bareName(model))
}

/** The name without the vendor's prefix, in lower case: `openai/gpt-5` becomes `gpt-5`. */
export function bareName(model: string): string {
  return model.slice(model.lastIndexOf('/') + 1).toLowerCase()
}

function find(list: readonly Known[], model: string): Known | undefined {
  return list.find(({ name }) => name.test(bareName(model)))
}
