import { raceAbort } from '../internal/time.js'
import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'
import type { HeldStream } from './backlog.js'
import { Deflater } from './deflate.js'
import { encodeFragment, FIN, Opcode, RSV1 } from './frame.js'
import { toBytes, type WebSocketBytes } from './payload.js'
import { PreparedMessage } from './prepared-message.js'
import type { Sender, SendResult } from './sender.js'

/** A piece of a message; all pieces of one are strings, or all are bytes. */
export type MessageChunk = string | WebSocketBytes

/** Where the pieces of a long message come from, such as a generator or a Node or web stream. */
export type MessageSource = AsyncIterable<MessageChunk> | Iterable<MessageChunk>

/** Options of `sendStream()`. */
export interface SendStreamOptions {
  /** `false` sends the message uncompressed even if compression is agreed. @defaultValue true */
  readonly compress?: boolean | undefined
  /** Gives the message up; see {@link WebSocketConnection.sendStream}. */
  readonly signal?: AbortSignal | undefined
}

const OPTIONS: OptionKinds<SendStreamOptions> = { compress: 'boolean', signal: 'object' }

/** What the end of each deflated piece has, except the last one (RFC 7692, section 7.2.1). */
const SYNC_FLUSH = Buffer.from([0x00, 0x00, 0xff, 0xff])

/**
 * Sends one message in fragments, one for each piece (RFC 6455, section 5.4). No frame is held back
 * until the next piece is there, so the last one is empty.
 */
export class FragmentedMessage implements HeldStream {
  readonly #sender: Sender
  readonly #signal: AbortSignal | undefined
  readonly #deflater: Deflater | null
  #open = true
  #wake: (() => void) | null = null
  #started = false
  /** Of the message; 0 before its first piece. */
  #opcode = 0
  #fragments = 0
  /** The first half of a surrogate pair, at the end of the last piece. */
  #half = ''

  constructor(sender: Sender, { compress = true, signal }: SendStreamOptions) {
    this.#sender = sender
    this.#signal = signal
    this.#deflater = compress ? deflaterFor(sender) : null
  }

  /** Whether part of the message was sent, but not all of it. */
  get incomplete(): boolean {
    return this.#fragments > 0 && this.#open
  }

  start(): void {
    this.#started = true
    if (!this.#open) this.#sender.endStream(this)
    this.#wake?.()
  }

  ended(): void {
    this.#open = false
    this.#wake?.()
  }

  /** @throws whatever the source throws, or the reason of the signal. */
  async send(source: MessageSource): Promise<SendResult> {
    this.#sender.beginStream(this)
    try {
      if (!this.#started && this.#open) await this.#interruptible(new Promise<never>(() => {}))
      return this.#open ? await this.#sendAll(iteratorOf(source)) : 'closed'
    } finally {
      // What was begun cannot be taken back: then it is up to the caller to end the connection.
      if (!this.incomplete) {
        this.#open = false
        this.#sender.endStream(this)
      }
    }
  }

  async #sendAll(iterator: AnyIterator): Promise<SendResult> {
    try {
      for (;;) {
        const step = await this.#interruptible(Promise.resolve(iterator.next()))
        if (!this.#open) return stop(iterator)
        if (step === null || step.done === true) return this.#end()
        this.#take(step.value)
        while (this.#open && this.#sender.full) await this.#interruptible(this.#room())
        if (!this.#open) return stop(iterator)
      }
    } catch (error) {
      stop(iterator)
      throw error
    }
  }

  /** The result of `work`, or `null` if the message starts or the connection ends before that. */
  #interruptible<T>(work: Promise<T>): Promise<T | null> {
    const wakeable = new Promise<T | null>((resolve, reject) => {
      this.#wake = () => resolve(null)
      work.then(resolve, reject)
    })
    return this.#signal === undefined ? wakeable : raceAbort(wakeable, this.#signal)
  }

  #room(): Promise<void> {
    return new Promise((resolve) => this.#sender.onceRoom(resolve))
  }

  #take(chunk: MessageChunk): void {
    if (chunk instanceof PreparedMessage) {
      throw new TypeError('a prepared message is whole: pass it to send()')
    }
    const binary = typeof chunk === 'string' ? null : toBytes(chunk, 'a piece')
    const opcode = binary === null ? Opcode.TEXT : Opcode.BINARY
    if (this.#opcode !== 0 && this.#opcode !== opcode) {
      throw new TypeError('the pieces of one message must be all strings, or all bytes')
    }
    const bytes = binary ?? this.#encode(chunk as string)
    this.#opcode = opcode
    const most = this.#deflater?.config.maxBytes ?? bytes.length
    for (let at = 0; at < bytes.length; at += most) this.#push(bytes.subarray(at, at + most), false)
  }

  /** UTF-8, without cutting a pair in two: each half alone would become U+FFFD. */
  #encode(chunk: string): Buffer {
    const text = this.#half + chunk
    const last = text.charCodeAt(text.length - 1)
    this.#half = last >= 0xd800 && last < 0xdc00 ? text.slice(-1) : ''
    return Buffer.from(text.slice(0, text.length - this.#half.length))
  }

  #push(bytes: Uint8Array, last: boolean): void {
    const deflater = this.#deflater
    const first = this.#fragments++ === 0
    const kind = first ? this.#opcode | (deflater === null ? 0 : RSV1) : Opcode.CONTINUATION
    this.#sender.push(encodeFragment((last ? FIN : 0) | kind, this.#payload(bytes, last)))
  }

  #payload(bytes: Uint8Array, last: boolean): Uint8Array {
    const deflater = this.#deflater
    if (deflater === null) return bytes
    const deflated = deflater.compress(bytes)
    deflater.remember(bytes)
    return last ? deflated : Buffer.concat([deflated, SYNC_FLUSH])
  }

  #end(): SendResult {
    if (this.#opcode !== 0) {
      this.#push(Buffer.from(this.#half), true)
      this.#sender.counters.messagesSent++
    }
    this.#open = false
    if (this.#opcode === 0) return 'dropped'
    return this.#sender.full ? 'full' : 'sent'
  }
}

/** Later pieces may always refer to earlier ones, later messages only with context takeover. */
function deflaterFor({ deflater }: Sender): Deflater | null {
  if (deflater === null || deflater.config.maxBytes === 0) return null
  if (deflater.agreement.contextTakeover) return deflater
  return new Deflater({ ...deflater.agreement, contextTakeover: true }, deflater.config)
}

type AnyIterator = AsyncIterator<MessageChunk> | Iterator<MessageChunk>

/** Ends the source without waiting for it. */
function stop(iterator: AnyIterator): SendResult {
  void (async () => await iterator.return?.())().catch(() => undefined)
  return 'closed'
}

function iteratorOf(source: MessageSource): AnyIterator {
  return Symbol.asyncIterator in source
    ? source[Symbol.asyncIterator]()
    : source[Symbol.iterator]()
}

/** @throws TypeError for what is no source, or a whole message; `signal.reason` after an abort. */
export function checkStream(source: unknown, options: SendStreamOptions): void {
  checkOptions(options, OPTIONS, 'sendStream()')
  checkSource(source)
  options.signal?.throwIfAborted()
}

function checkSource(source: unknown): asserts source is MessageSource {
  const whole = ArrayBuffer.isView(source) || source instanceof PreparedMessage
  if (typeof source === 'object' && source !== null && !whole) {
    if (Symbol.asyncIterator in source || Symbol.iterator in source) return
  }
  const got = typeof source === 'string' || whole ? 'a whole message: use send()' : null
  throw new TypeError(
    `the source of a message must be iterable, got ${got ?? describeValue(source)}`,
  )
}
