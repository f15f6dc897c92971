/**
 * Keeps secrets out of the log, and thereby out of events, errors, pages and prompts. Secrets are
 * the texts that the host names, the values of this process's variables with telling names, and
 * texts of the shape of a well-known key.
 *
 * 1. Every record is redacted before it is folded, so no reader of the log can show a secret.
 * 2. A tool call whose arguments contain a secret, or the mark that replaces one, does not run:
 *    with the secret it could not be logged, and with the mark it would write the wrong text.
 * 3. A text without secrets is returned as the same object, at the cost of one regular expression.
 *
 * This is hygiene, not a boundary: a command can encode what it prints.
 *
 * @module
 */
import { MAX_JSON_DEPTH } from '../../internal/json.js'
import type { RecordDraft } from '../events.js'
import type { AssistantMessage, ToolCall } from '../model.js'

/** The mark that replaces a secret. */
export const REDACTED = '[secret removed]'

/** Keys that are recognizable anywhere by a distinct prefix and their length. */
const KEY_SHAPES = [
  'sk-(?:ant|proj|svcacct|admin|or)-[\\w-]{24,}',
  'sk-[A-Za-z0-9]{32,}',
  '[sr]k_(?:live|test)_[A-Za-z0-9]{20,}',
  'gsk_[A-Za-z0-9]{40,}',
  'xai-[A-Za-z0-9]{40,}',
  'hf_[A-Za-z0-9]{30,}',
  'AIza[\\w-]{35}',
  'gh[opsur]_[A-Za-z0-9]{36,}',
  'github_pat_\\w{50,}',
  'glpat-[\\w-]{20,}',
  'npm_[A-Za-z0-9]{36}',
  'pypi-[\\w-]{60,}',
  'xox[abeoprs]-[\\w-]{20,}',
  'A(?:KIA|SIA)[A-Z2-7]{16}(?![A-Za-z0-9])',
  'eyJ[\\w-]{10,}\\.eyJ[\\w-]{10,}\\.[\\w-]{10,}',
].map((shape) => `\\b${shape}`)
/** How keys of these shapes begin, to find one that the end of the text cuts. */
const KEY_PREFIXES = [
  'sk-',
  'sk_',
  'rk_',
  'gsk_',
  'xai-',
  'hf_',
  'AIza',
  'gho_',
  'ghp_',
  'ghs_',
  'ghu_',
  'ghr_',
  'github_pat_',
  'glpat-',
  'npm_',
  'pypi-',
  'xoxa-',
  'xoxb-',
  'xoxe-',
  'xoxo-',
  'xoxp-',
  'xoxr-',
  'xoxs-',
  'AKIA',
  'ASIA',
  'eyJ',
]
/** A key, or the beginning of its prefix, that the end of the text may cut. */
const OPEN_KEY = new RegExp(
  `\\b(?:(?:${KEY_PREFIXES.join('|')})[\\w.-]*|${KEY_PREFIXES.map(prefixPattern).join('|')})$`,
  'g',
)
const PRIVATE_KEY_END = '-----END (?:[A-Z]+ )*PRIVATE KEY-----'
const PRIVATE_KEY =
  `-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----[\\s\\S]*?(?:${PRIVATE_KEY_END}|$)`
/** A private key without its end: part of its header, or a body without the footer. */
const OPEN_PRIVATE_KEY = new RegExp(
  '-----BEGIN (?:[A-Z]+ )*(?:[A-Z]*|PRIVATE KEY-{0,4}|' +
    `PRIVATE KEY-----(?:(?!${PRIVATE_KEY_END})[\\s\\S])*)$` +
    `|(?:${prefixPattern('-----BEGIN ')})$`,
  'g',
)

/** Names of variables whose values are taken for secrets. */
const SECRET_NAME = new RegExp(
  '(?:^|_)(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|KEY|TOKEN|SECRET|' +
    'PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|AUTH)(?:_|$)',
  'i',
)
/** Values that are likely words, paths or numbers, which must not be removed from every text. */
const ORDINARY_VALUE = /^(?:.{0,7}|[a-z]{8,15}|[A-Z]{8,15}|\d+|\/.*)$/s
/** Characters of the shortest secret that a host may name. */
export const SHORTEST_SECRET = 6
/** Levels of a record that are searched: those of a value from outside, and its record's own. */
const MAX_DEPTH = 2 * MAX_JSON_DEPTH

/** Replaces given secrets, and everything of the shape of a key, with {@link REDACTED}. */
export class Redactor {
  readonly #find: RegExp
  readonly #every: RegExp
  /** The given secrets in all their written forms, longest first. */
  readonly #exact: readonly string[]
  /** First UTF-16 units of `#exact`, to skip most offsets cheaply. */
  readonly #firsts: ReadonlySet<string>
  readonly #longest: number

  /** @param secrets - texts to redact in addition to everything of the shape of a key. */
  constructor(secrets: readonly string[]) {
    const exact = [...new Set(secrets.flatMap(writtenForms))].sort((a, b) => b.length - a.length)
    this.#exact = exact
    this.#firsts = new Set(exact.map((secret) => secret.charAt(0)))
    this.#longest = exact[0]?.length ?? 0
    const source = [...exact.map(escapePattern), ...KEY_SHAPES, PRIVATE_KEY].join('|')
    this.#find = new RegExp(source)
    this.#every = new RegExp(source, 'g')
  }

  /** Whether the text contains a secret. */
  finds(text: string): boolean {
    return text.length >= SHORTEST_SECRET && this.#find.test(text)
  }

  /** Replaces the secrets in a text. */
  text(text: string): string {
    return this.finds(text) ? text.replace(this.#every, REDACTED) : text
  }

  /**
   * Redacts a text from `from` up to where a secret may begin that the end of the text cuts, and
   * returns that offset: no continuation of the text can change what is before it.
   */
  settled(text: string, from: number): { readonly shown: string; readonly end: number } {
    let shown = ''
    for (let at = from; ;) {
      const open = this.#openSecret(text, at)
      this.#every.lastIndex = at
      const match = this.#every.exec(text)
      if (match === null || match.index >= open)
        return { shown: shown + text.slice(at, open), end: open }
      shown += text.slice(at, match.index) + REDACTED
      at = match.index + match[0].length
    }
  }

  /** Offset of the first secret, from `from`, that the end of the text may cut; else its length. */
  #openSecret(text: string, from: number): number {
    let first = text.length
    for (let at = Math.max(from, text.length - this.#longest + 1); at < first; at++) {
      if (!this.#firsts.has(text.charAt(at))) continue
      const rest = text.slice(at)
      if (this.#exact.some((secret) => secret.length > rest.length && secret.startsWith(rest)))
        first = at
    }
    for (const open of [OPEN_KEY, OPEN_PRIVATE_KEY]) {
      open.lastIndex = from
      first = Math.min(first, open.exec(text)?.index ?? first)
    }
    return first
  }

  /**
   * Whether any property name or string in the value contains a secret or the mark of one. What is
   * nested too deep to be searched is taken for one.
   */
  findsIn(value: unknown, depth = 0): boolean {
    if (typeof value === 'string') return this.finds(value) || value.includes(REDACTED)
    if (typeof value !== 'object' || value === null) return false
    if (depth > MAX_DEPTH) return true
    for (const name in value) {
      const part = (value as { readonly [name: string]: unknown })[name]
      if (this.finds(name) || this.findsIn(part, depth + 1)) return true
    }
    return false
  }

  /** Redacts every string in a value, names included; the same object if it has no secret. */
  value<T>(value: T): T {
    return this.#value(value, 0) as T
  }

  #value(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null || !this.findsIn(value, depth)) return value
    if (depth > MAX_DEPTH) return REDACTED
    if (Array.isArray(value)) return value.map((part: unknown) => this.#value(part, depth + 1))
    const parts = Object.entries(value).map(([name, part]) => [
      this.text(name),
      this.#value(part, depth + 1),
    ])
    return Object.fromEntries(parts)
  }

  /** Redacts a record; the same object if it has no secret. */
  draft(draft: RecordDraft): RecordDraft {
    switch (draft.kind) {
      // These hold only numbers, ids, and texts that the engine has already checked.
      case 'run_created':
      case 'run_started':
      case 'run_recovered':
      case 'run_suspended':
      case 'step_start':
      case 'llm_usage':
      case 'iteration_complete':
        return draft
      case 'model_turn':
        return this.#modelTurn(draft)
      case 'goal_check':
        // A cached verdict was redacted when it was first logged.
        return draft.payload.cached ? draft : this.#parts(draft)
      default:
        return this.#parts(draft)
    }
  }

  #parts(draft: RecordDraft): RecordDraft {
    const payload = this.value(draft.payload)
    if (!('private' in draft))
      return payload === draft.payload ? draft : ({ ...draft, payload } as RecordDraft)
    const hidden = this.value(draft.private)
    if (payload === draft.payload && hidden === draft.private) return draft
    return { ...draft, payload, private: hidden } as RecordDraft
  }

  #modelTurn(draft: Extract<RecordDraft, { kind: 'model_turn' }>): RecordDraft {
    const hidden = draft.private
    const payload = this.value(draft.payload)
    if (hidden === undefined) return payload === draft.payload ? draft : { ...draft, payload }
    const message = this.#message(hidden.message)
    const feedback = hidden.feedback === undefined ? undefined : this.text(hidden.feedback)
    if (payload === draft.payload && message === hidden.message && feedback === hidden.feedback)
      return draft
    return { ...draft, payload, private: { message, ...(feedback !== undefined && { feedback }) } }
  }

  /** Drops the provider's own parts if a secret was found, since they repeat the text and calls. */
  #message(message: AssistantMessage): AssistantMessage {
    const found =
      this.finds(message.text) ||
      message.calls.some(({ args }) => this.findsIn(args)) ||
      (message.parts !== undefined && this.findsIn(message.parts.value))
    if (!found) return message
    return {
      role: 'assistant',
      text: this.text(message.text),
      calls: message.calls.map((call) => this.#call(call)),
    }
  }

  #call(call: ToolCall): ToolCall {
    if (!this.findsIn(call.args)) return call
    return { ...call, args: this.value(call.args), error: call.error ?? SECRET_IN_CALL }
  }
}

/** Sent to the model in place of running a call that contains a secret. */
const SECRET_IN_CALL =
  `Not run: the arguments hold a key or password, or the mark ${REDACTED} that stands for one. ` +
  'Secrets are not shown and not written here. Change other parts of the file with edit_file, or ' +
  'let the program read the secret from its environment.'

/** Values of variables with telling names, except for paths, numbers and plain words. */
export function secretsOfEnvironment(
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  return Object.entries(env).flatMap(([name, value = '']) => {
    return SECRET_NAME.test(name) && !ORDINARY_VALUE.test(value) ? [value] : []
  })
}

/** A secret as it is, escaped in JSON, and encoded in a URL. */
function writtenForms(secret: string): readonly string[] {
  const wellFormed = Buffer.from(secret).toString()
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(wellFormed)]
}

/** Matches every proper prefix of `text`. */
function prefixPattern(text: string): string {
  return Array.from(text, (_, i) => escapePattern(text.slice(0, i))).slice(1).join('|')
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
