/**
 * The messages of one run, as the fold of its records adds them.
 *
 * What no later call can send is forgotten, so that memory follows the model's window and not the
 * length of the run. Forgetting cannot be observed: `fit()` with the same budget or a smaller one
 * returns what the whole conversation would, and the log has every message.
 *
 * @module
 */
import { deepFreezeList } from '../../internal/freeze.js'
import { MAX_KEPT_CHARACTERS, MAX_KEPT_IMAGES, TOO_OLD } from '../images.js'
import {
  imagesOf, withoutImages, withoutParts, type ImagePart, type Message,
} from '../model.js'
import { estimateConversation, estimateTokens, fitContext, type FittedContext } from './fit.js'

/** What later calls may still need; see {@link Conversation.fit}. */
export interface Kept {
  readonly keptTokens?: number
  readonly keptTurns?: boolean
}

/** A conversation that only grows; see the module's comment for what it forgets. */
export class Conversation {
  #messages: Message[] = []
  /** Of the messages, in their order. */
  #images: ImagePart[] = []
  /** Tokens of the first `#counted` messages: each message is counted once, when a fit asks. */
  #tokens = 0
  #counted = 0
  /** The first so many are frozen: each is looked at once, when it is sent for the first time. */
  #frozen = 0

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  get hasImages(): boolean {
    return this.#images.length > 0
  }

  add(message: Message): void {
    this.#messages.push(message)
    const images = imagesOf(message)
    if (images.length > 0) this.#boundImages(images)
  }

  /** Leaves out the oldest images until the others are few enough; those of the goal stay. */
  #boundImages(added: readonly ImagePart[]): void {
    const isOver = (): boolean => {
      const characters = this.#images.reduce((sum, { data }) => sum + data.length, 0)
      return this.#images.length > MAX_KEPT_IMAGES || characters > MAX_KEPT_CHARACTERS
    }
    this.#images.push(...added)
    for (let at = 1; at < this.#messages.length - 1 && isOver(); at++) {
      const message = this.#messages[at]!
      const gone = imagesOf(message)
      if (gone.length === 0) continue
      this.#images = this.#images.filter((one) => !gone.includes(one))
      this.#messages[at] = withoutImages(message, TOO_OLD)
      this.#tokens = this.#counted = this.#frozen = 0
    }
  }

  /** Another model reads it from now on: see {@link withoutParts}. */
  dropParts(): void {
    this.#messages = this.#messages.map(withoutParts)
    this.#tokens = this.#counted = this.#frozen = 0
  }

  /**
   * What to send within `budgetTokens`: the messages, then `next`, which is sent as it is and added
   * later if the call succeeds. The lists are the caller's: they do not grow with the conversation.
   *
   * What no later call can send is forgotten. `keptTokens`: no later call has a larger budget.
   * `keptTurns`: turns are not forgotten, as a summary of them may be asked for.
   */
  fit(
    budgetTokens: number,
    next: readonly Message[] = [],
    { keptTokens = budgetTokens, keptTurns = false }: Kept = {},
  ): FittedContext {
    const messages = this.#snapshot(next)
    const isSmall =
      budgetTokens === Infinity || this.#countTokens() + estimateConversation(next) <= budgetTokens
    if (isSmall) return { fits: true, messages, masked: 0, dropped: 0, rest: messages }
    const fitted = fitContext(messages, budgetTokens, estimateTokens, next.length)
    const isKept = keptTokens > budgetTokens
    const kept = isKept ? fitContext(messages, keptTokens, estimateTokens, next.length) : fitted
    const forgets = kept.fits && !(keptTurns && kept.dropped > 0)
    if (forgets) this.#forget(kept.rest, messages, next.length)
    return fitted
  }

  #forget(rest: readonly Message[], messages: readonly Message[], next: number): void {
    if (rest !== messages) this.replace(rest.slice(0, rest.length - next))
  }

  /** Would {@link Conversation.fit} drop turns, or not succeed? */
  overflows(budgetTokens: number, next: readonly Message[]): boolean {
    if (this.#countTokens() + estimateConversation(next) <= budgetTokens) return false
    const messages = [...this.#messages, ...next]
    const fitted = fitContext(messages, budgetTokens, estimateTokens, next.length)
    return !fitted.fits || fitted.dropped > 0
  }

  /** What is left of it: outputs that every later fit masks may be masked. */
  get messages(): readonly Message[] {
    return this.#messages
  }

  /** Goes on with these messages in place of all so far. */
  replace(messages: readonly Message[]): void {
    this.#messages = [...messages]
    if (this.#images.length > 0) this.#images = this.#messages.flatMap(imagesOf)
    this.#tokens = this.#counted = this.#frozen = 0
  }

  /** What has to be kept for calls within `budgetTokens`; all of it when it cannot be shortened. */
  kept(budgetTokens: number): readonly Message[] {
    const fitted = this.fit(budgetTokens)
    return fitted.fits ? fitted.rest : this.#messages
  }

  #snapshot(next: readonly Message[]): readonly Message[] {
    const list = deepFreezeList([...this.#messages, ...next], this.#frozen)
    this.#frozen = this.#messages.length
    return list
  }

  #countTokens(): number {
    for (; this.#counted < this.#messages.length; this.#counted++) {
      this.#tokens += estimateTokens(this.#messages[this.#counted] as Message)
    }
    return this.#tokens
  }
}
