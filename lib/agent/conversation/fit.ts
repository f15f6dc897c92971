/**
 * Fits a conversation into a token budget without ever separating a tool call from its result,
 * which providers reject.
 *
 * 1. The first user message, which has the goal, always stays, as does everything from the last
 *    turn of the model on.
 * 2. Images of older messages are left out first. Then outputs of older tool calls are masked,
 *    oldest first, and then the oldest turns are dropped, each with all of its results.
 * 3. Masking and dropping happen in steps of several turns, so that the beginning of the
 *    conversation, and with it the provider's prompt cache, usually stays the same from one call
 *    to the next.
 * 4. What a compaction has put in place of earlier turns, and what stays with it, is dropped last.
 *    Outputs of the last turn that leave no room for it, or for the goal, are cut, for that one
 *    call.
 * 5. A conversation that cannot be made to fit is reported at once.
 * 6. The conversation only grows and its budget does not, so what every later call would mask or
 *    drop need not be kept: `rest` is what must be.
 *
 * @module
 */
import { imageTokens, TOO_OLD } from '../images.js'
import {
  imagesOf, withoutImages, type Message, type ToolMessage, type UserMessage,
} from '../model.js'

export type FittedContext =
  | {
      readonly fits: true
      /** What to send; the list that was passed in if it fits as it is. */
      readonly messages: readonly Message[]
      /** Number of masked tool outputs. */
      readonly masked: number
      /** Number of dropped messages; all that `rest` dropped earlier count as one. */
      readonly dropped: number
      /**
       * What to keep of the conversation: with any messages added, it fits into this budget or a
       * smaller one exactly as the whole conversation would.
       */
      readonly rest: readonly Message[]
    }
  | {
      readonly fits: false
      /** Tokens of the shortest form of the conversation. */
      readonly neededTokens: number
    }

/** Turns that are masked or dropped at a time. */
const STEP = 8

/** Characters of outputs that are not worth masking. */
const SHORT_OUTPUT = 200

/** Characters that an output of the last turn keeps at least. */
const SHORTEST_CUT = 1_000
/** Outputs are cut to this part again and again until they fit. */
const CUT_STEP = 0.8

/** A placeholder for dropped turns, whose number and size still count in steps. */
interface Dropped extends UserMessage {
  readonly turns: number
  /** Tokens of those turns with their outputs masked. */
  readonly tokens: number
}

/** One turn of the model with its results, one user message, or the placeholder. */
interface Group {
  readonly messages: readonly Message[]
  readonly turns: number
  readonly tokens: number
  readonly masked: {
    readonly messages: readonly Message[]
    readonly tokens: number
    readonly outputs: number
  }
}

/**
 * Shortens `messages` until their estimates add up to at most `budgetTokens`, from which the caller
 * has already subtracted the system prompt and the tools.
 *
 * @param estimate - tokens of one message; see {@link estimateTokens}.
 * @param fresh - how many of the last messages the model has not seen yet: these stay as well.
 */
export function fitContext(
  messages: readonly Message[],
  budgetTokens: number,
  estimate: (message: Message) => number = estimateTokens,
  fresh = 0,
): FittedContext {
  const size = (message: Message): number => droppedOf(message)?.tokens ?? estimate(message)
  let total = 0
  for (const message of messages) total += size(message)
  if (total <= budgetTokens) return { fits: true, messages, masked: 0, dropped: 0, rest: messages }
  const bare = withoutOldImages(messages, fresh)
  if (bare !== messages) return fitContext(bare, budgetTokens, estimate, fresh)
  return shorten(messages, budgetTokens, total, size, fresh)
}

function shorten(
  messages: readonly Message[],
  budget: number,
  total: number,
  estimate: (message: Message) => number,
  fresh: number,
): FittedContext {
  const { head, middle, tail } = split(messages, estimate, fresh)
  const masked = takeUntil(middle, total, budget, (group) => group.tokens - group.masked.tokens)
  const maskedGroups = middle.map((group, i) => (i < masked.count ? group.masked : null))
  const outputs = maskedGroups.reduce((sum, group) => sum + (group?.outputs ?? 0), 0)
  if (masked.total <= budget) {
    const kept = middle.flatMap((group, i) => maskedGroups[i]?.messages ?? group.messages)
    const rest = middle.flatMap((group, i) => (i < masked.settled ? group.masked : group).messages)
    return {
      fits: true,
      messages: [...head, ...kept, ...tail],
      masked: outputs,
      dropped: 0,
      rest: [...head, ...rest, ...tail],
    }
  }
  const parts = { head, middle, tail, total: masked.total }
  const fitted = drop(parts, pinnedIn(middle), budget, estimate) ?? drop(parts, 0, budget, estimate)
  if (fitted !== null) return fitted
  const least = tail.map((message) => cutOutput(message, SHORTEST_CUT))
  return { fits: false, neededTokens: sumOf([...head, dropNotice(), ...least], estimate) }
}

interface Parts extends Split {
  /** Tokens of all of it, with the outputs of the middle masked. */
  readonly total: number
}

/** Drops turns behind the first `pinned` groups; null when that is not enough. */
function drop(
  { head, middle, tail, total }: Parts,
  pinned: number,
  budget: number,
  estimate: (message: Message) => number,
): FittedContext | null {
  const notice = dropNotice()
  const [pins, others] = [middle.slice(0, pinned), middle.slice(pinned)]
  const dropped = others.reduce((sum, group) => sum + group.masked.tokens, 0)
  const start = total + estimate(notice)
  const shorter = cutOutputs(tail, start - dropped - budget, estimate)
  const saved = sumOf(tail, estimate) - sumOf(shorter, estimate)
  const left = takeUntil(others, start - saved, budget, (group) => group.masked.tokens)
  if (left.total > budget) return null
  const [gone, kept] = [others.slice(0, left.count), others.slice(left.count)]
  const stays = [...pins, ...kept]
  // When the outputs of the last turn are masked in their turn, dropped turns may fit again.
  const least = start - sumOf(tail, estimate) + sumOf(tail.map(maskOutput), estimate)
  const isFinal = least - estimate(notice) > budget
  const final = isFinal ? takeUntil(others, least, budget, (group) => group.masked.tokens).count : 0
  return {
    fits: true,
    messages: [
      ...head,
      ...pins.flatMap((group) => group.masked.messages),
      ...(gone.length > 0 ? [notice] : []),
      ...kept.flatMap((group) => group.masked.messages),
      ...shorter,
    ],
    masked: stays.reduce((sum, group) => sum + group.masked.outputs, 0),
    dropped: gone.reduce((sum, group) => sum + group.messages.length, 0),
    rest: [
      ...head,
      ...pins.flatMap((group) => group.masked.messages),
      ...placeholderFor(others.slice(0, final)),
      ...others.slice(final).flatMap((group) => group.masked.messages),
      ...tail,
    ],
  }
}

/** How many groups are what stands in place of earlier turns, and what stays with it. */
function pinnedIn(middle: readonly Group[]): number {
  const first = middle[0]?.messages[0]
  if (first?.role !== 'user' || first.stands_for === undefined) return 0
  const isTurn = ({ messages: [first] }: Group): boolean =>
    first?.role !== 'user' || droppedOf(first) !== undefined
  const end = middle.findIndex(isTurn)
  return end < 0 ? middle.length : end
}

/**
 * The messages with their longest outputs cut to one length, so that they take at least `over`
 * tokens less; the same messages when that is not possible, or `over` is not positive.
 */
function cutOutputs(
  messages: readonly Message[],
  over: number,
  estimate: (message: Message) => number,
): readonly Message[] {
  if (over <= 0) return messages
  const before = sumOf(messages, estimate)
  const lengths = messages.map((one) => (one.role === 'tool' ? one.output.length : 0))
  const longest = Math.max(0, ...lengths)
  for (let length = longest; length > SHORTEST_CUT; ) {
    length = Math.max(SHORTEST_CUT, Math.floor(length * CUT_STEP))
    const cut = messages.map((one) => cutOutput(one, length))
    if (before - sumOf(cut, estimate) >= over) return cut
  }
  return messages
}

/** Beginning and end of an output. Nothing here holds a secret: all of it comes from the log. */
function cutOutput(message: Message, characters: number): Message {
  if (message.role !== 'tool' || message.output.length <= characters) return message
  const { output } = message
  const half = Math.floor(characters / 2)
  // Halves of a character are no text.
  const head = output.slice(0, half).replace(/[\ud800-\udbff]$/, '')
  const tail = output.slice(-half).replace(/^[\udc00-\udfff]/, '')
  const left = output.length - head.length - tail.length
  const notice = `[… ${left} characters left out here; call the tool again for a part of it …]`
  return { ...message, output: `${head}\n${notice}\n${tail}` }
}

function sumOf(messages: readonly Message[], estimate: (message: Message) => number): number {
  return messages.reduce((sum, message) => sum + estimate(message), 0)
}

/** All at once: no later call would send them, as the conversation only grows. */
function withoutOldImages(messages: readonly Message[], fresh: number): readonly Message[] {
  const tailFrom = tailOf(messages, fresh)
  const firstUser = messages.findIndex(({ role }) => role === 'user')
  const isOld = (message: Message, i: number): boolean =>
    i < tailFrom && i !== firstUser && imagesOf(message).length > 0
  if (!messages.some(isOld)) return messages
  return messages.map((one, i) => (isOld(one, i) ? withoutImages(one, TOO_OLD) : one))
}

function placeholderFor(groups: readonly Group[]): Dropped[] {
  if (groups.length === 0) return []
  const turns = groups.reduce((sum, group) => sum + group.turns, 0)
  const tokens = groups.reduce((sum, group) => sum + group.masked.tokens, 0)
  return [{ role: 'user', text: '', turns, tokens }]
}

function droppedOf(message: Message): Dropped | undefined {
  return 'turns' in message ? (message as Dropped) : undefined
}

/**
 * How many groups, oldest first, must give up `gain` for `total` to reach `budget`, in steps. The
 * first `settled` of them make up whole steps: they give it up in every later call as well.
 */
function takeUntil(
  groups: readonly Group[],
  total: number,
  budget: number,
  gain: (group: Group) => number,
): { readonly count: number; readonly settled: number; readonly total: number } {
  let [count, settled, turns, rest] = [0, 0, 0, total]
  while (count < groups.length && (rest > budget || turns % STEP !== 0)) {
    const group = groups[count++]!
    rest -= gain(group)
    turns += group.turns
    if (turns % STEP === 0) settled = count
  }
  return { count, settled, total: rest }
}

/** The messages that stay (`head`, `tail`) and the groups between them. */
interface Split {
  readonly head: readonly Message[]
  readonly middle: readonly Group[]
  readonly tail: readonly Message[]
}

function split(
  messages: readonly Message[],
  estimate: (message: Message) => number,
  fresh: number,
): Split {
  const firstUser = messages.findIndex(({ role }) => role === 'user')
  const tailFrom = tailOf(messages, fresh)
  const head = firstUser !== -1 && firstUser < tailFrom ? [messages[firstUser]!] : []
  const middle: Group[] = []
  let open: Message[] = []
  const close = (): void => {
    if (open.length > 0) middle.push(makeGroup(open, estimate))
    open = []
  }
  for (let i = 0; i < tailFrom; i++) {
    const message = messages[i]!
    if (i === firstUser) continue
    if (message.role !== 'tool') close()
    open.push(message)
  }
  close()
  return { head, middle, tail: messages.slice(tailFrom) }
}

/** The index of the first message that stays with everything after it. */
function tailOf(messages: readonly Message[], fresh: number): number {
  const lastTurn = messages.findLastIndex(({ role }) => role === 'assistant')
  return lastTurn === -1 ? Math.max(0, messages.length - Math.max(1, fresh)) : lastTurn
}

function makeGroup(messages: readonly Message[], estimate: (message: Message) => number): Group {
  const shorter = messages.map(maskOutput)
  const sum = (list: readonly Message[]): number =>
    list.reduce((all, message) => all + estimate(message), 0)
  const outputs = shorter.filter((message, i) => message !== messages[i]).length
  const tokens = sum(messages)
  return {
    messages,
    turns: droppedOf(messages[0]!)?.turns ?? 1,
    tokens,
    masked: { messages: shorter, tokens: outputs === 0 ? tokens : sum(shorter), outputs },
  }
}

/** A result with its output left out, unless that is short. */
export function maskOutput(message: Message): Message {
  if (message.role !== 'tool' || message.output.length <= SHORT_OUTPUT) return message
  const masked: ToolMessage = {
    ...message,
    output: `[${message.output.length} characters left out; call the tool again if you need them]`,
  }
  return masked
}

/** What the model gets in place of turns that were dropped. */
export function dropNotice(): UserMessage {
  return {
    role: 'user',
    text:
      '[The oldest part of this conversation was left out because it no longer fits. ' +
      'Files are as your tools show them now.]',
  }
}

/** A message as the model gets it: a placeholder has no words of its own. */
export function asSent(message: Message): Message {
  return droppedOf(message) === undefined ? message : dropNotice()
}

const estimates = new WeakMap<Message, number>()

/**
 * Tokens of one message, estimated at three characters per token, more than most tokenizers need
 * for code and English. Cached per message object.
 */
export function estimateTokens(message: Message): number {
  const known = droppedOf(message)?.tokens ?? estimates.get(message)
  if (known !== undefined) return known
  const seen = imagesOf(message).reduce((sum, image) => sum + imageTokens(image), 0)
  const tokens = Math.ceil(lengthOf(message) / 3) + 8 + seen
  estimates.set(message, tokens)
  return tokens
}

export function estimateConversation(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + estimateTokens(message), 0)
}

function lengthOf(message: Message): number {
  if (message.role === 'user') return message.text.length
  if (message.role === 'tool') return message.output.length
  const calls = message.calls.reduce((sum, call) => sum + JSON.stringify(call).length, 0)
  const parts = message.parts === undefined ? 0 : JSON.stringify(message.parts.value).length
  return Math.max(message.text.length + calls, parts)
}
