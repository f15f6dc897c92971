/**
 * Pure: how the beginning of a conversation gives way to a summary of it.
 *
 * 1. What is decided is in the log, as a number of turns; what follows from it is a function of the
 *    log alone. So a process that takes a run over sends what the one before it would have sent.
 * 2. The first message, with the goal, stays; so do the newest verdict with its output, the newest
 *    messages of people, as far as they are short, and everything from the last turn on. Results
 *    never lose their calls.
 * 3. Images and outputs of the other turns that stay are left out. They were before: nothing is
 *    compacted while that is enough, and the log does not say which process had left out what.
 * 4. The rest is clearly smaller than the room for it, so that the next time is many turns away.
 *
 * @module
 */
import { TOO_OLD } from '../images.js'
import { withoutImages, type Message, type UserMessage } from '../model.js'
import { asSent, estimateConversation, estimateTokens, maskOutput } from './fit.js'
import { isChecked, isOfPeople, isRepeatedCheck, isSummary } from './message-prefixes.js'

/** Part of the room that the conversation takes afterwards. */
const TARGET_SHARE = 0.5
/** Parts of the room that a summary may take, and messages of people that stay. */
const SUMMARY_SHARE = 1 / 8
const PEOPLE_SHARE = 1 / 8
/** Tokens of a summary, however large the room; and of messages of people that stay. */
const MAX_SUMMARY = 4_096
const MAX_PEOPLE = 8_192

/** What the log says of a compaction. */
export interface Compacted {
  readonly turns: number
  readonly verbatim: number
}

/** What would be compacted. */
export interface CompactionPlan extends Compacted {
  /** Turns that no message stands for yet. */
  readonly fresh: number
  /** What a summary would stand for, as it was sent. */
  readonly messages: readonly Message[]
}

/** Turns of the model that a message is or stands for. */
export function turnsIn(message: Message): number {
  if (message.role === 'assistant') return 1
  return message.role === 'user' ? (message.stands_for ?? 0) : 0
}

/** Tokens that a summary may have. */
export function summaryTokens(room: number): number {
  return Math.floor(Math.min(MAX_SUMMARY, room * SUMMARY_SHARE))
}

/**
 * What to compact so that the conversation, with `next` behind it, takes its part of `room` tokens;
 * null when there is nothing but the last turn.
 */
export function planCompaction(
  messages: readonly Message[],
  next: readonly Message[],
  room: number,
): CompactionPlan | null {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  if (last < 1) return null
  const most = Math.min(MAX_PEOPLE, room * PEOPLE_SHARE)
  const pins = pinned(messages.slice(1, last), messages.slice(last), Infinity, most)
  const stays = [messages[0] as Message, ...pins, ...messages.slice(last), ...next]
  let left = room * TARGET_SHARE - summaryTokens(room) - estimateConversation(stays)
  let from = last
  while (from > 1) {
    left -= estimateTokens(masked(messages[from - 1] as Message))
    if (left < 0) break
    from -= 1
  }
  const old = messages.slice(0, from)
  const turns = count(old, turnsIn)
  const fresh = turns - count(old, (message) => (message.role === 'user' ? turnsIn(message) : 0))
  if (fresh === 0) return null
  const end = endOf(messages, turns)
  const left_out = messages.slice(0, end)
  return {
    turns,
    fresh,
    verbatim: peopleIn(left_out.slice(1), most).length,
    messages: left_out.map((message, i) => asSent(i === 0 ? message : masked(message))),
  }
}

/**
 * The conversation after a compaction. `inPlace` returns what stands in place of so many turns, if
 * these messages stay; `isReplaced`: earlier summaries give way as well.
 *
 * @throws TypeError when it has fewer turns than the log says.
 */
export function compacted(
  messages: readonly Message[],
  { turns, verbatim }: Compacted,
  inPlace: (turns: number, kept: readonly Message[]) => readonly UserMessage[],
  isReplaced: boolean,
): Message[] {
  const end = endOf(messages, turns)
  const [first, ...old] = messages.slice(0, end) as [Message, ...Message[]]
  const kept = messages.slice(end)
  const last = kept.findLastIndex(({ role }) => role === 'assistant')
  const before = isReplaced ? [] : old.filter(isSummary)
  return [
    first,
    ...before,
    ...inPlace(turns - count(before, turnsIn), kept),
    ...pinned(old, kept, verbatim, Infinity).map(masked),
    ...kept.map((message, i) => (i < last ? masked(message) : message)),
  ]
}

/** A message without its images, and with its output left out. */
function masked(message: Message): Message {
  return maskOutput(withoutImages(message, TOO_OLD))
}

/** The index behind the results of this turn. */
function endOf(messages: readonly Message[], turns: number): number {
  let seen = 0
  for (let i = 0; i < messages.length; i++) {
    seen += turnsIn(messages[i] as Message)
    if (seen < turns) continue
    let end = i + 1
    while (messages[end]?.role === 'tool') end++
    return end
  }
  throw new TypeError(`the log names turn ${turns} of a conversation that has ${seen}`)
}

/** What stays of `old`, in its order: see rule 2. */
function pinned(
  old: readonly Message[],
  kept: readonly Message[],
  verbatim: number,
  tokens: number,
): Message[] {
  const people = peopleIn(old, tokens)
  const stays = new Set<Message>([
    ...people.slice(Math.max(0, people.length - verbatim)),
    ...verdicts([...old, ...kept]),
  ])
  return old.filter((message) => stays.has(message))
}

/** The newest messages of people within so many tokens. */
function peopleIn(messages: readonly Message[], tokens: number): readonly Message[] {
  const all = messages.filter(isOfPeople)
  let left = tokens
  const over = all.findLastIndex((message) => (left -= estimateTokens(message)) < 0)
  return all.slice(over + 1)
}

/** The newest verdict, with the one that it repeats if it says only that nothing has changed. */
function verdicts(messages: readonly Message[]): readonly Message[] {
  const newest = messages.findLast(isChecked)
  if (newest === undefined || !isRepeatedCheck(newest)) return newest === undefined ? [] : [newest]
  const whole = messages.findLast((message) => isChecked(message) && !isRepeatedCheck(message))
  return whole === undefined ? [newest] : [whole, newest]
}

function count(messages: readonly Message[], of: (message: Message) => number): number {
  return messages.reduce((sum, message) => sum + of(message), 0)
}
