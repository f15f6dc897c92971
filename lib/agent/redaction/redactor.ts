/**
 * Keeps secrets out of the log, and thereby out of events, errors, pages and prompts. Secrets are
 *
 * - what this process was given as a credential (see `internal/errors.ts`), the texts that the
 *   host names, and the values of variables with telling names, in the forms in which programs
 *   write them;
 * - texts of the shape of a well-known key;
 * - what stands where a password stands: in a URL, a header, a connection string, or behind the
 *   name of a variable whose value is an ordinary word, which is masked nowhere else.
 *
 * 1. Every record is redacted before it is folded, so no reader of the log can show a secret.
 * 2. A text is redacted before it is cut (see `output.ts`), or no part of a secret could be found.
 * 3. A text without secrets is returned as the same object, at the cost of one pass.
 *
 * This is hygiene, not a boundary: a command can encode what it prints.
 *
 * @module
 */
import {
  addCredential, addNamedCredential, addSecret, credentialChanges, credentials, isOrdinary,
  REDACTED,
} from '../../internal/errors.js'
import { mapTexts, MAX_RECORD_DEPTH } from '../../internal/json.js'
import { contextPatterns, openContextAt, valuesInContext } from './contexts.js'
import { secretsOfEnvironment } from './environment.js'
import { Scanner, type SearchOptions, type Span } from './scanner.js'
import { findPrivateKeys, KEY_PATTERNS, openKeyAt } from './shapes.js'
import { SpelledText } from './spelled-text.js'

/** Characters of the shortest secret that a host may name. */
export const SHORTEST_SECRET = 6

/** Replaces secrets with {@link REDACTED}. */
export class Redactor {
  readonly #own: readonly string[]
  #scanner: Scanner | undefined
  #names: readonly string[] = []
  #forms: ReadonlyMap<string, WrittenForms> = new Map()
  /** The state of the register that the scanner was made for. */
  #changes = -1

  /** @param secrets - texts to redact in addition to what the process knows. */
  constructor(secrets: readonly string[] = []) {
    this.#own = secrets
  }

  #current(): Scanner {
    const changes = credentialChanges()
    if (this.#scanner !== undefined && changes === this.#changes) return this.#scanner
    const { secrets, values, named } = credentials()
    this.#changes = changes
    this.#names = [...new Set(named.map(([name]) => name))]
    const all = [...this.#own, ...secrets, ...values]
    this.#forms = new Map(all.map((one) => [one, this.#forms.get(one) ?? writtenForms(one)]))
    const forms = [...this.#forms.values()]
    this.#scanner = new Scanner(
      forms.flatMap(({ literals }) => literals),
      [...KEY_PATTERNS, ...contextPatterns(named)],
      forms.flatMap(({ spelled }) => spelled),
    )
    return this.#scanner
  }

  /** Where secrets are, in order and apart. */
  #spans(text: string, options?: SearchOptions): readonly Span[] {
    const spans = this.#current().find(text, options)
    const all = text.length < 40 ? spans : [...spans, ...findPrivateKeys(text).spans]
    return all.length < 2 ? all : joined(all)
  }

  /**
   * Whether the text contains a secret that is recognizable by itself. A text with such a secret
   * can be neither stored nor shown as it is.
   */
  finds(text: string): boolean {
    if (text.length < SHORTEST_SECRET) return false
    return this.#spans(text, { first: true, noContexts: true }).length > 0
  }

  /** Replaces the secrets in a text. */
  text(text: string): string {
    return text.length < SHORTEST_SECRET ? text : this.part(text, 0, text.length)
  }

  /** Replaces the secrets in a text, and keeps its number of lines. */
  lines(text: string): string {
    return render(text, 0, text.length, this.#spans(text), true)
  }

  /**
   * A part of a text, without anything of the secrets that it contains or that its ends cut.
   * `isOpen`: the text itself may be cut in the middle of a secret.
   */
  part(text: string, from: number, to: number, isOpen = false): string {
    const end = isOpen ? Math.min(to, this.#openAt(text)) : to
    return render(text, from, end, this.#spans(text), false)
  }

  /**
   * Redacts a text from `from` up to where a secret may begin that the end of the text cuts, and
   * returns that offset: no continuation of the text can change what is before it.
   */
  settled(text: string, from: number): { readonly shown: string; readonly end: number } {
    const open = Math.max(from, this.#openAt(text))
    const spans = this.#spans(text)
    // A secret at the end may be longer.
    const isOpen = ({ start, end }: Span): boolean =>
      start < open && (end > open || end === text.length)
    const end = spans.find(isOpen)?.start ?? open
    const to = Math.max(from, end)
    return { shown: render(text, from, to, spans, false), end: to }
  }

  /** Offset of the first secret that the end of the text may cut; else its length. */
  #openAt(text: string): number {
    return Math.min(
      this.#current().openAt(text),
      openKeyAt(text),
      openContextAt(text, this.#names),
      findPrivateKeys(text).openAt,
    )
  }

  /**
   * Whether any property name or string in the value contains a secret or the mark of one. What is
   * nested too deep to be searched is taken for one.
   */
  findsIn(value: unknown, depth = 0): boolean {
    return this.#anyIn(value, (text) => this.finds(text) || text.includes(REDACTED), depth)
  }

  /**
   * Whether a request contains a secret, other than an ordinary word in the place of a password:
   * in test set-ups, `postgres://postgres:postgres@localhost` is no secret.
   */
  forbids(value: unknown): boolean {
    const forbids = (text: string): boolean =>
      text.includes(REDACTED) ||
      this.finds(text) ||
      this.#spans(text).some(({ start, end }) => !isOrdinary(text.slice(start, end)))
    return this.#anyIn(value, forbids, 0)
  }

  #anyIn(value: unknown, test: (text: string) => boolean, depth: number): boolean {
    if (typeof value === 'string') return test(value)
    if (typeof value !== 'object' || value === null) return false
    if (depth > MAX_RECORD_DEPTH) return true
    for (const name in value) {
      const part = (value as { readonly [name: string]: unknown })[name]
      if (test(name) || this.#anyIn(part, test, depth + 1)) return true
    }
    return false
  }

  /** Redacts every string in a value, names included; the same object if it has no secret. */
  value<T>(value: T): T {
    return mapTexts(value, (text) => this.text(text), REDACTED)
  }
}

/** The redactor of this process: its engines, and everything that cuts a text, use this one. */
export const redactor: Redactor = new Redactor()

/** Adds secrets that the host names, and those of the environment, to what the process knows. */
export function addSecrets(
  secrets: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): void {
  const { values, named } = secretsOfEnvironment(env, valuesInContext)
  for (const secret of secrets) addSecret(secret)
  for (const value of values) addCredential(value)
  for (const [name, value] of named) addNamedCredential(name, value)
}

/** Sorts spans and joins those that overlap. */
function joined(spans: readonly Span[]): readonly Span[] {
  const apart: { readonly start: number; end: number }[] = []
  for (const { start, end } of [...spans].sort((a, b) => a.start - b.start)) {
    const last = apart.at(-1)
    if (last !== undefined && start < last.end) last.end = Math.max(last.end, end)
    else apart.push({ start, end })
  }
  return apart
}

/** A part of the text with a mark in place of each span that it touches. */
function render(
  text: string,
  from: number,
  to: number,
  spans: readonly Span[],
  keepsLines: boolean,
): string {
  let shown = ''
  let at = from
  for (const { start, end } of spans) {
    if (end <= from || start >= to) continue
    shown += text.slice(at, Math.max(at, start)) + REDACTED
    if (keepsLines) shown += '\n'.repeat(text.slice(start, end).split('\n').length - 1)
    at = end
  }
  return at === from && shown === '' && from === 0 && to === text.length
    ? text
    : shown + text.slice(at, Math.max(at, to))
}

/**
 * The forms in which programs write a secret: as it is, and in base64 as part of a longer text.
 */

/** Characters of the shortest piece of base64 that stands for a secret. */
const SHORTEST_BASE64 = 8
/** A line of a key in several lines. */
const KEY_LINE = /^[A-Za-z0-9+/=_-]{32,}$/

/** The forms of a secret, whose characters may be spelled in several ways. */
export interface WrittenForms {
  readonly literals: readonly string[]
  readonly spelled: readonly SpelledText[]
}

/** All forms of a secret. */
function writtenForms(secret: string): WrittenForms {
  const base64 = [...new Set(base64Forms(Buffer.from(secret).toString()))]
  const lines = secret.includes('\n') ? secret.split(/\r?\n/).filter((l) => KEY_LINE.test(l)) : []
  const spelled = base64.map((form) => new SpelledText(form, true))
  if (!SpelledText.isPlain(secret)) spelled.push(new SpelledText(secret))
  return { literals: [secret, ...base64, ...lines], spelled }
}

/**
 * Base64 of a text that contains the secret: three forms, by the number of bytes before it, without
 * the characters that hold bits of other bytes too; each in both alphabets.
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const forms = [0, 1, 2].map((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
    const end = Math.floor((whole.length * 8) / 6)
    return whole.toString('base64').slice(Math.ceil((before * 8) / 6), end)
  })
  const urlSafe = forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [...forms, ...urlSafe].filter(({ length }) => length >= SHORTEST_BASE64)
}
