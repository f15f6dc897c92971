/**
 * Model providers from environment variables. No other file reads these variables.
 *
 * @module
 */
import { checkObject, checkOptions, type OptionKinds } from '../../internal/options.js'
import { trimEndOf } from '../../internal/text.js'
import type { ModelAdapter } from './adapter.js'
import { anthropicAdapter } from './anthropic/adapter.js'
import { geminiAdapter } from './gemini/adapter.js'
import {
  checkByModel, createHttpProvider, type HttpProvider, type HttpProviderOptions,
} from './http-provider.js'
import { isReasoningModel } from './known-models.js'
import { openAiChatAdapter } from './openai/chat.js'
import { openAiResponsesAdapter } from './openai/responses.js'

const NETWORK: OptionKinds<Network> = {
  transport: 'object', prices: 'any', contextWindow: 'any',
}

/** Matches bare names of OpenAI's models. */
const OPENAI_FAMILY = /^(?:gpt-|chatgpt-|o[1-9](?:-|$)|codex-)/

/** A local server may load the model before it sends a byte. */
const LOCAL_IDLE_MS = 600_000

/**
 * Creates the providers for which `env` has a key or an address:
 *
 * | variable | provider |
 * |---|---|
 * | `OPENAI_API_KEY` | `openai`: reasoning models over Responses, others over Chat Completions |
 * | `OPENAI_BASE_URL` | `openai` at any Chat Completions server, with or without a key |
 * | `ANTHROPIC_API_KEY` | `anthropic`; `ANTHROPIC_BASE_URL` overrides the address |
 * | `GEMINI_API_KEY` | `gemini`; `GEMINI_BASE_URL` overrides the address |
 * | `OLLAMA_HOST` | `ollama`; `OLLAMA_CONTEXT_LENGTH` is its context window |
 *
 * None of them becomes the default model: a key in the environment is no consent to spend money.
 *
 * @param network - a transport that replaces the network, for gateways and tests; `prices` and
 *   `contextWindow` of the models of all providers but Ollama, whose calls cost nothing.
 * @throws TypeError that names the invalid variable, and its value unless that is a key.
 */
export function providersFromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  network: Pick<HttpProviderOptions, 'contextWindow' | 'prices' | 'transport'> = {},
): readonly HttpProvider[] {
  checkObject('env', env)
  checkOptions(network, NETWORK, 'providersFromEnvironment()')
  checkByModel(network)
  const makers = [openAi, anthropic, gemini, ollama]
  return makers.map((make) => make(env, network)).filter((provider) => provider !== null)
}

type Environment = Readonly<Record<string, string | undefined>>
type Network = Pick<HttpProviderOptions, 'contextWindow' | 'prices' | 'transport'>

function openAi(env: Environment, network: Network): HttpProvider | null {
  const apiKey = keyOf(env, 'OPENAI_API_KEY')
  const baseUrl = urlOf(env, 'OPENAI_BASE_URL')
  if (apiKey === undefined && baseUrl === undefined) return null
  const own = baseUrl === undefined || new URL(baseUrl).host === 'api.openai.com'
  return createHttpProvider(own ? openAiAdapterFor : openAiChatAdapter(), {
    ...network,
    id: 'openai',
    apiKey,
    baseUrl,
    family: OPENAI_FAMILY,
    suggestions: own ? ['gpt-5.4', 'gpt-5.4-mini', 'gpt-5-mini', 'gpt-4.1'] : [],
    description: own ? 'OpenAI' : `Chat Completions at ${new URL(baseUrl).host}`,
  })
}

/**
 * OpenAI's newer reasoning models refuse tools in Chat Completions, and all reasoning models lose
 * their reasoning between calls there.
 */
function openAiAdapterFor(model: string): ModelAdapter {
  return isReasoningModel(model)
    ? openAiResponsesAdapter()
    : openAiChatAdapter({ strictTools: true, maxTokensField: 'max_completion_tokens' })
}

function anthropic(env: Environment, network: Network): HttpProvider | null {
  const apiKey = keyOf(env, 'ANTHROPIC_API_KEY')
  if (apiKey === undefined) return null
  return createHttpProvider(anthropicAdapter(), {
    ...network,
    id: 'anthropic',
    apiKey,
    baseUrl: urlOf(env, 'ANTHROPIC_BASE_URL'),
    family: /^claude-/,
    suggestions: ['claude-opus-5', 'claude-sonnet-5', 'claude-haiku-4-5'],
    description: 'Anthropic, Messages',
  })
}

function gemini(env: Environment, network: Network): HttpProvider | null {
  const apiKey = keyOf(env, 'GEMINI_API_KEY')
  if (apiKey === undefined) return null
  return createHttpProvider(geminiAdapter(), {
    ...network,
    id: 'gemini',
    apiKey,
    baseUrl: urlOf(env, 'GEMINI_BASE_URL'),
    family: /^gemini-/,
    suggestions: ['gemini-3.5-flash', 'gemini-2.5-pro', 'gemini-2.5-flash'],
    description: 'Google Gemini',
  })
}

function ollama(env: Environment, { transport }: Network): HttpProvider | null {
  const host = valueOf(env, 'OLLAMA_HOST')
  if (host === undefined) return null
  const baseUrl = ollamaUrl(host)
  const length = valueOf(env, 'OLLAMA_CONTEXT_LENGTH')
  if (length !== undefined && !/^[1-9]\d{0,9}$/.test(length)) {
    throw new TypeError(`OLLAMA_CONTEXT_LENGTH must be a number of tokens, got ${length}`)
  }
  return createHttpProvider(openAiChatAdapter(), {
    transport,
    id: 'ollama',
    baseUrl,
    idleTimeoutMs: LOCAL_IDLE_MS,
    contextWindow: length === undefined ? null : Number(length),
    // Local calls cost nothing.
    prices: { input: 0, output: 0, as_of: '2026-01-01' },
    description: `Ollama at ${new URL(baseUrl).host}`,
  })
}

/** Accepts `host`, `host:port` or a URL, as Ollama does; a wildcard address means loopback. */
function ollamaUrl(host: string): string {
  const text = /^https?:\/\//.test(host) ? host : `http://${host}`
  if (!URL.canParse(text))
    throw new TypeError(`OLLAMA_HOST must be host:port or a URL, got ${host}`)
  const url = new URL(text)
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1'
  if (url.port === '' && !/^https:/.test(text) && !/:80\b/.test(text)) url.port = '11434'
  url.pathname = `${trimEndOf(url.pathname, '/')}/v1`
  return url.href
}

function valueOf(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

function keyOf(env: Environment, name: string): string | undefined {
  const key = valueOf(env, name)
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError(`${name} must be a key of visible ASCII characters, without blanks`)
  }
  return key
}

function urlOf(env: Environment, name: string): string | undefined {
  const text = valueOf(env, name)
  if (text !== undefined && !(URL.canParse(text) && /^https?:/.test(text))) {
    throw new TypeError(
      `${name} must be an http or https URL, such as https://api.example/v1, got ${text}`,
    )
  }
  return text
}
