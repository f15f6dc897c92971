/**
 * Keeps secrets out of the log, and with it out of events, errors, pages, and of what a model gets
 * to read. What counts as a secret: what the host names, the values of variables of this process
 * whose names say so, and texts of the shape of a well-known key.
 *
 * 1. Every record passes here before it is folded: what the log does not hold, nobody can show.
 * 2. A tool call whose arguments hold a secret, or the mark that stands for one, does not run: with
 *    the secret it could not be logged, and with the mark it would write something else than meant.
 * 3. A text without a secret is given back as it is; looking costs one pass of one expression.
 *
 * This is hygiene, not a wall: whoever runs commands can encode what they print.
 *
 * @module
 */
import type { JsonValue } from '../../internal/json.js'
import type { RecordDraft } from '../events.js'
import type { AssistantMessage, ToolCall } from '../model.js'

/** Stands where a secret stood. */
export const REDACTED = '[secret removed]'

/** Texts that are keys wherever they stand: distinct beginnings, and too long to be words. */
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
/** What such keys begin with, in full or up to the end of the text, and the rest of their characters. */
const KEY_BEGINNINGS = [
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
const OPEN_KEY = new RegExp(
  `\\b(?:(?:${KEY_BEGINNINGS.join('|')})[\\w.-]*|${KEY_BEGINNINGS.map(beginningsOf).join('|')})$`,
  'g',
)
const PRIVATE_KEY =
  '-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----[\\s\\S]*?(?:-----END (?:[A-Z]+ )*PRIVATE KEY-----|$)'
/** The same without its end: a header that is not whole, or a body whose footer has not come. */
const OPEN_PRIVATE_KEY = new RegExp(
  `-----BEGIN (?:[A-Z]+ )*(?:[A-Z]*|PRIVATE KEY-{0,4}|PRIVATE KEY-----(?:(?!-----END (?:[A-Z]+ )*PRIVATE KEY-----)[\\s\\S])*)$` +
    `|(?:${beginningsOf('-----BEGIN ')})$`,
  'g',
)

/** Names of variables whose values are secrets. */
const SECRET_NAME =
  /(?:^|_)(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|AUTH)(?:_|$)/i
/** Values of variables that are more likely words, paths or numbers: they would vanish from every text. */
const NO_SECRET = /^(?:.{0,7}|[a-z]{8,15}|[A-Z]{8,15}|\d+|\/.*)$/s
/** Characters of the shortest secret that a host may name. */
export const SHORTEST_SECRET = 6

/** Finds secrets and takes them out. */
export class Redactor {
  readonly #find: RegExp
  readonly #every: RegExp
  /** What the host named, in all forms, and how their first characters are told. */
  readonly #exact: readonly string[]
  readonly #firsts: ReadonlySet<string>
  readonly #longest: number

  /** `secrets`: texts that are secret by themselves, besides everything of the shape of a key. */
  constructor(secrets: readonly string[]) {
    const exact = [...new Set(secrets.flatMap(writtenForms))].sort((a, b) => b.length - a.length)
    this.#exact = exact
    this.#firsts = new Set(exact.map(([first = '']) => first))
    this.#longest = exact[0]?.length ?? 0
    const source = [...exact.map(escapePattern), ...KEY_SHAPES, PRIVATE_KEY].join('|')
    this.#find = new RegExp(source)
    this.#every = new RegExp(source, 'g')
  }

  /** Is there a secret in the text? */
  finds(text: string): boolean {
    return text.length >= SHORTEST_SECRET && this.#find.test(text)
  }

  /** The text without its secrets; the very same one when it has none. */
  text(text: string): string {
    return this.finds(text) ? text.replace(this.#every, REDACTED) : text
  }

  /**
   * The part of a text that no continuation can change, from `from`, without its secrets, and where
   * it ends: what comes after may be the beginning of a secret.
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

  /** Where the first secret begins, from `from`, that the end of the text may cut; else that end. */
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

  /** Is there a secret, or the mark of one, in a name or a text of the value? */
  findsIn(value: unknown): boolean {
    if (typeof value === 'string') return this.finds(value) || value.includes(REDACTED)
    if (typeof value !== 'object' || value === null) return false
    for (const name in value) {
      if (this.finds(name) || this.findsIn((value as { readonly [name: string]: unknown })[name]))
        return true
    }
    return false
  }

  /** The value with every text redacted, names included; the very same one when it has no secret. */
  value<T>(value: T): T {
    if (typeof value === 'string') return this.text(value) as T
    if (typeof value !== 'object' || value === null || !this.findsIn(value)) return value
    if (Array.isArray(value)) return value.map((part: unknown) => this.value(part)) as T
    const parts = Object.entries(value).map(([name, part]) => [
      this.text(name),
      this.value(part as JsonValue),
    ])
    return Object.fromEntries(parts) as T
  }

  /** The record without its secrets; the very same one when it has none. */
  draft(draft: RecordDraft): RecordDraft {
    switch (draft.kind) {
      // What these hold was made by the engine from what it had checked, or is numbers and ids.
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
        // What is repeated was looked at when it came.
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

  /** The provider's own parts are left out when something was changed: they say the same once more. */
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

/** What the model hears when its call did not run for the sake of a secret. */
const SECRET_IN_CALL =
  `Not run: the arguments hold a key or password, or the mark ${REDACTED} that stands for one. ` +
  'Secrets are not shown and not written here. Change other parts of the file with edit_file, or ' +
  'let the program read the secret from its environment.'

/** Values of variables whose names say that they are secret. Paths, numbers and mere words are none. */
export function secretsOfEnvironment(
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  return Object.entries(env).flatMap(([name, value = '']) => {
    return SECRET_NAME.test(name) && !NO_SECRET.test(value) ? [value] : []
  })
}

/** A secret as it is, as it stands within JSON, and as it stands within a URL. */
function writtenForms(secret: string): readonly string[] {
  const wellFormed = Buffer.from(secret).toString()
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(wellFormed)]
}

/** A pattern for the proper beginnings of `text`. */
function beginningsOf(text: string): string {
  return Array.from(text, (_, i) => escapePattern(text.slice(0, i))).slice(1).join('|')
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
