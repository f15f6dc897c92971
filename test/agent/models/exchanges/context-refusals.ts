/** Refusals of a conversation that is too long. */
import type { Dialect } from './dialects.js'
import {
  CHUNK, failure, google, plain, refused, says, streamed, typed, type Refusal,
} from './refusal.js'

const TOO_LONG = {
  openai:
    "This model's maximum context length is 128000 tokens. However, your messages resulted in " +
    '130042 tokens. Please reduce the length of the messages.',
  configured:
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301288 ' +
    'tokens. Please reduce the length of the messages.',
  openRouter:
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140213 " +
    'tokens (132021 of text input, 8192 in the output). Please reduce the length of either one.',
  vllm:
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens " +
    '(3976 in the messages, 1024 in the completion). Please reduce the length of the messages.',
  vllmPrompt:
    'The decoder prompt (length 2136) is longer than the maximum model length of 2048. Make sure ' +
    'that `max_model_len` is no smaller than the number of text tokens.',
  bedrock: 'Input is too long for requested model.',
  bedrockClaude:
    'The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum',
  copilot: 'prompt token count of 93854 exceeds the limit of 90000',
  llamaCpp: 'the request exceeds the available context size, try increasing it',
  lmStudio:
    'Trying to keep the first 6402 tokens when context the overflows. However, the model is loaded ' +
    'with context length of only 4096 tokens, which is not enough.',
  mistral:
    'Prompt contains 32921 tokens and 0 draft tokens, too large for model with 32768 maximum ' +
    'context length',
  responses:
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
  anthropic: 'prompt is too long: 208310 tokens > 200000 maximum',
  anthropicAnswer:
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input ' +
    'length or `max_tokens` and try again',
  anthropicBytes: 'Request exceeds the maximum size',
  gemini:
    'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).',
  geminiBare: 'The input token count exceeds the maximum number of tokens allowed (1048576).',
  geminiBytes: 'Request payload size exceeds the limit: 20971520 bytes.',
} as const
const exceeded = { code: 'context_length_exceeded', type: 'invalid_request_error' }

export const CONTEXT: Readonly<Record<Dialect, readonly Refusal[]>> = {
  'openai-chat': [
    says('OpenAI', 400, TOO_LONG.openai, plain(TOO_LONG.openai, exceeded), 'context'),
    says('OpenAI', 400, TOO_LONG.configured, plain(TOO_LONG.configured, exceeded), 'context'),
    says(
      'Azure', 400, TOO_LONG.openai, plain(TOO_LONG.openai, { ...exceeded, status: 400 }),
      'context',
    ),
    says(
      'OpenRouter', 400, TOO_LONG.openRouter,
      plain(TOO_LONG.openRouter, { code: 400, metadata: { provider_name: null } }), 'context',
    ),
    says(
      'vLLM', 400, TOO_LONG.vllm,
      { object: 'error', message: TOO_LONG.vllm, type: 'BadRequestError', param: null, code: 400 },
      'context',
    ),
    says(
      'vLLM', 400, TOO_LONG.vllmPrompt,
      plain(TOO_LONG.vllmPrompt, { type: 'BadRequestError', code: 400 }), 'context',
    ),
    says(
      'a server before vLLM', 500, TOO_LONG.vllmPrompt, { detail: TOO_LONG.vllmPrompt }, 'context',
    ),
    says(
      'a gateway before Bedrock', 400, TOO_LONG.bedrock, { message: TOO_LONG.bedrock }, 'context',
    ),
    says(
      'GitHub Copilot', 400, TOO_LONG.copilot, plain(TOO_LONG.copilot, { code: '', type: '' }),
      'context',
    ),
    says(
      'llama.cpp', 400, TOO_LONG.llamaCpp,
      plain(TOO_LONG.llamaCpp, { code: 400, type: 'exceed_context_size_error', n_ctx: 4096 }),
      'context',
    ),
    says('LM Studio', 400, TOO_LONG.lmStudio, { error: TOO_LONG.lmStudio }, 'context'),
    says(
      'Mistral', 400, TOO_LONG.mistral,
      {
        object: 'error', message: TOO_LONG.mistral, type: 'invalid_request_prompt', code: '3051',
      },
      'context',
    ),
    streamed('OpenRouter: too long', TOO_LONG.openRouter, 'context', undefined, CHUNK, {
      ...CHUNK, error: { message: TOO_LONG.openRouter, code: 400 },
    }),
    streamed('vLLM: too long', TOO_LONG.vllm, 'context', undefined, {
      error: { object: 'error', message: TOO_LONG.vllm, type: 'BadRequestError', code: 400 },
    }),
    refused('OpenAI', 400, { error: { code: 'context_length_exceeded', message: 'x' } }, 'context'),
    refused(
      'vLLM', 400,
      {
        object: 'error', type: 'BadRequestError', code: 400,
        message: "This model's maximum context length is 4096 tokens. However, you requested 5000.",
      },
      'context',
    ),
    refused(
      'OpenAI', 429,
      plain('Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 33000.', {
        type: 'tokens', code: 'rate_limit_exceeded',
      }),
      'context',
    ),
    refused(
      'Groq', 413,
      plain('Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000', {
        type: 'tokens', code: 'rate_limit_exceeded',
      }),
      'context',
    ),
    refused('a body that is too large', 413, 'nope', 'context'),
    refused(
      'llama.cpp', 400, { error: { type: 'exceed_context_size_error', message: 'x' } }, 'context',
    ),
    refused(
      'llama.cpp', 500,
      plain('Context size has been exceeded.', { code: 500, type: 'server_error' }), 'context',
    ),
    refused(
      'Moonshot', 400,
      plain('Invalid request: Your request exceeded model token limit: 262144', {
        type: 'invalid_request_error',
      }),
      'context',
    ),
    refused(
      'Qwen', 400,
      plain('Range of input length should be [1, 129024]', { code: 'invalid_parameter_error' }),
      'context',
    ),
    refused(
      'xAI', 400,
      {
        code: 'Client specified an invalid argument',
        error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      },
      'context',
    ),
    refused(
      'Together', 422,
      plain('Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193.', {
        type: 'invalid_request_error',
      }),
      'context',
    ),
  ],
  'openai-responses': [
    says('OpenAI', 400, TOO_LONG.responses, plain(TOO_LONG.responses, exceeded), 'context'),
    says(
      'vLLM', 400, TOO_LONG.vllm, plain(TOO_LONG.vllm, { type: 'BadRequestError', code: 400 }),
      'context',
    ),
    {
      title: 'a response that failed: too long', words: TOO_LONG.responses,
      fails: failure('context'),
      whole: {
        status: 'failed', output: [], error: { ...exceeded, message: TOO_LONG.responses },
        incomplete_details: null,
      },
    },
    streamed('an error of its own: too long', TOO_LONG.responses, 'context', undefined, {
      type: 'error', code: exceeded.code, message: TOO_LONG.responses, param: 'input',
      sequence_number: 2,
    }),
    streamed('an error within: too long', TOO_LONG.responses, 'context', undefined, {
      type: 'error', sequence_number: 2, error: { ...exceeded, message: TOO_LONG.responses },
    }),
  ],
  anthropic: [
    says(
      'the prompt', 400, TOO_LONG.anthropic, typed('invalid_request_error', TOO_LONG.anthropic),
      'context',
    ),
    says(
      'the prompt and the answer', 400, TOO_LONG.anthropicAnswer,
      typed('invalid_request_error', TOO_LONG.anthropicAnswer), 'context',
    ),
    says(
      'the bytes', 413, TOO_LONG.anthropicBytes,
      typed('request_too_large', TOO_LONG.anthropicBytes), 'context',
    ),
    says('Bedrock', 400, TOO_LONG.bedrock, { message: TOO_LONG.bedrock }, 'context'),
    says('Bedrock', 400, TOO_LONG.bedrockClaude, { message: TOO_LONG.bedrockClaude }, 'context'),
    streamed(
      'the prompt is too long', TOO_LONG.anthropic, 'context', undefined,
      typed('invalid_request_error', TOO_LONG.anthropic),
    ),
  ],
  gemini: [
    says(
      'the prompt', 400, TOO_LONG.gemini, google(400, 'INVALID_ARGUMENT', TOO_LONG.gemini),
      'context',
    ),
    says(
      'the prompt, without its length', 400, TOO_LONG.geminiBare,
      google(400, 'INVALID_ARGUMENT', TOO_LONG.geminiBare), 'context',
    ),
    says(
      'the bytes', 400, TOO_LONG.geminiBytes,
      google(400, 'INVALID_ARGUMENT', TOO_LONG.geminiBytes), 'context',
    ),
    streamed(
      'the prompt is too long', TOO_LONG.gemini, 'context', undefined,
      google(400, 'INVALID_ARGUMENT', TOO_LONG.gemini),
    ),
  ],
}
