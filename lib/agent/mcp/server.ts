/**
 * A Model Context Protocol server as a source of tools. It is a foreign program, which may crash,
 * lie, flood, or change its tools at any time.
 *
 * 1. One session at a time. The next call after a failure opens a new session: at once after the
 *    first failure, then no sooner than a random delay of up to 1 s, 2 s, 4 s … 60 s; calls before
 *    that fail. A successful call resets the delay.
 * 2. A call is sent once. It is repeated only when the server no longer knows the session, since
 *    the server then did nothing.
 * 3. Tools stay usable: a call of a tool that the server has removed returns the server's error.
 *
 * @module
 */
import {
  type Backoff, backoffDelay, raceAbort, steadyNow, type Timer,
} from '../../internal/time.js'
import { describeError } from '../../internal/errors.js'
import type { JsonObject, JsonValue } from '../../internal/json.js'
import { PageCheck } from '../../internal/web.js'
import { McpError } from '../errors.js'
import type { Tool, ToolOutput } from '../tool.js'
import type { ChannelListener, McpAuthorizer, McpChannel } from './channel.js'
import type { McpEndpoint } from './http.js'
import type { McpServerConfig } from './options.js'
import {
  type McpPromptInfo, type McpResourceInfo, readPromptInfo, readResourceInfo,
} from './resources.js'
import { readCallResult, readResourceResult } from './results.js'
import { McpSession } from './session.js'
import { openStdioChannel } from './stdio.js'
import { buildTools } from './tools.js'

/** Resources, templates or prompts that are read. */
const MAX_ITEMS = 1_000
/** Delays before a new session after repeated failures. */
const RESTART_BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 }
/** Milliseconds between two reads of a list that keeps changing. */
const REFRESH_MS = 1_000

/** Keeps a session with one server, and offers its tools. */
export class McpServer implements AsyncDisposable {
  readonly name: string
  readonly #config: McpServerConfig
  readonly #closed = new AbortController()
  #session: McpSession | null = null
  #opening: Promise<McpSession> | null = null
  #authorizer: McpAuthorizer | null = null
  #tools: readonly Tool[] = []
  /** Whether the list of tools has been read once. */
  #listed = false
  #hasResources = false
  #failures = 0
  #notBefore = 0
  #lastProblem = ''
  #refresh: Timer | undefined
  #closing: Promise<void> | undefined

  /** Creates the server without connecting to it; see `openMcpServer`. */
  constructor(config: McpServerConfig) {
    this.name = config.name
    this.#config = config
  }

  /** The tools read last; the list changes when the server announces a change. */
  tools(): readonly Tool[] {
    return this.#tools
  }

  /** Whether the server has resources that the options allow the model to read. */
  get hasResources(): boolean {
    return this.#hasResources
  }

  /**
   * Asks the server for its resources and its templates of their URIs, at most 1000 of each; none
   * if it has no resources.
   *
   * @throws McpError; the signal's reason.
   */
  async resources(signal: AbortSignal = this.#closed.signal): Promise<readonly McpResourceInfo[]> {
    if (!(await this.#offers('resources', signal))) return []
    const list = await this.#list('resources/list', 'resources', signal)
    // Servers without templates may refuse the request.
    const templates = await this.#list('resources/templates/list', 'resourceTemplates', signal)
      .catch((error: unknown) => {
        if (error instanceof McpError && error.problem === 'refused') return []
        throw error
      })
    return [...list, ...templates].map(readResourceInfo).filter((info) => info !== null)
  }

  /** Reads a resource as a call does: a failure is an output too. @throws the signal's reason. */
  async readResource(
    uri: string,
    signal: AbortSignal = this.#closed.signal,
  ): Promise<ToolOutput> {
    return await this.#output('resources/read', { uri }, signal, readResourceResult)
  }

  /**
   * Asks the server for its prompts, at most 1000; none if it has no prompts.
   *
   * @throws McpError; the signal's reason.
   */
  async prompts(signal: AbortSignal = this.#closed.signal): Promise<readonly McpPromptInfo[]> {
    if (!(await this.#offers('prompts', signal))) return []
    const list = await this.#list('prompts/list', 'prompts', signal)
    return list.map((entry) => readPromptInfo(this.name, entry)).filter((info) => info !== null)
  }

  async #offers(feature: string, signal: AbortSignal): Promise<boolean> {
    return (await raceAbort(this.#connect(), signal)).offers(feature)
  }

  /** Connects and reads the list of tools. @throws McpError; the signal's reason. */
  async open(signal?: AbortSignal): Promise<void> {
    const opened = this.#connect()
    const session = await (signal === undefined ? opened : raceAbort(opened, signal))
    await this.#readTools(session)
  }

  /** Tries to open a server that could not be opened so far; does nothing while the delay lasts. */
  retry(): void {
    if (!this.#listed && this.#opening === null) this.open().catch(() => undefined)
  }

  /** Ends the session, and the process with all that it started. Pending calls fail. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** For `await using`: calls `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#closed.abort()
    this.#refresh?.cancel()
    const session = this.#session ?? (await this.#opening?.catch(() => null))
    await session?.close()
    await this.#authorizer?.close()
  }

  /** Returns the current session, or opens one; rejects while the delay after a failure lasts. */
  #connect(): Promise<McpSession> {
    const { name, clock } = this.#config
    if (this.#closed.signal.aborted) {
      return Promise.reject(new McpError(name, 'unreachable', 'it was closed by the host'))
    }
    if (this.#session !== null) return Promise.resolve(this.#session)
    const wait = this.#notBefore - steadyNow(clock)
    if (this.#opening === null && wait > 0) {
      const when = `it is started again in ${Math.ceil(wait / 1000)} s at the earliest`
      return Promise.reject(new McpError(name, 'unreachable', `${this.#lastProblem}; ${when}`))
    }
    this.#opening ??= this.#openSession().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  async #openSession(): Promise<McpSession> {
    const { name, clock, startTimeoutMs } = this.#config
    let opened: McpSession | null = null
    try {
      opened = await McpSession.open(
        {
          server: name,
          clock,
          timeoutMs: startTimeoutMs,
          onToolsChanged: () => this.#refreshSoon(),
          onClose: (error) => {
            if (opened !== null) this.#lost(opened, error)
          },
          connect: (listener) => this.#openChannel(listener),
        },
        this.#closed.signal,
      )
    } catch (error) {
      this.#failed(error)
      throw error
    }
    this.#session = opened
    if (this.#listed) this.#refreshSoon()
    return opened
  }

  async #openChannel(listener: ChannelListener): Promise<McpChannel> {
    const { name, target, maxMessageBytes } = this.#config
    if ('command' in target) return await openStdioChannel(name, target, maxMessageBytes, listener)
    const authorizer = await this.#openAuthorizer(target)
    const { openHttpChannel } = await import('./http.js')
    return openHttpChannel({ ...this.#config, authorizer }, target, listener)
  }

  /** Tokens outlive a session. */
  async #openAuthorizer({ url, oauth, transport }: McpEndpoint): Promise<McpAuthorizer | null> {
    if (oauth === undefined) return null
    const { OAuthAuthorizer } = await import('./oauth/authorizer.js')
    const { name, clock } = this.#config
    this.#authorizer ??= new OAuthAuthorizer({ name, clock, url, transport }, oauth)
    return this.#authorizer
  }

  #lost(session: McpSession, error: McpError): void {
    if (this.#session === session) this.#session = null
    if (error.problem !== 'session') this.#failed(error)
    void session.close().catch(() => undefined)
  }

  #failed(error: unknown): void {
    this.#failures += 1
    this.#lastProblem = error instanceof McpError ? error.detail : String(error)
    const wait = this.#failures === 1 ? 0 : backoffDelay(this.#failures - 1, RESTART_BACKOFF)
    this.#notBefore = steadyNow(this.#config.clock) + wait
  }

  async #readTools(session: McpSession): Promise<void> {
    // Some servers do not say that they have tools, but one that names other features would.
    const others = session.offers('resources') || session.offers('prompts')
    const list =
      others && !session.offers('tools')
        ? []
        : await readList(
            this.name,
            'tools/list',
            'tools',
            10 * this.#config.maxTools,
            (method, params) => session.request(method, params),
          )
    this.#listed = true
    this.#hasResources = this.#config.resources && session.offers('resources')
    this.#tools = buildTools(list, this.#config, async (tool, args, { signal }) => {
      const params = { name: tool.name, arguments: args }
      return await this.#output('tools/call', params, signal, (result) =>
        readCallResult(result, tool.outputSchema),
      )
    })
  }

  /** Reads the list of tools again after a delay, which bounds the rate of these reads. */
  #refreshSoon(): void {
    if (this.#refresh !== undefined || this.#closed.signal.aborted) return
    this.#refresh = this.#config.clock.setTimeout(() => {
      this.#refresh = undefined
      const session = this.#session
      if (session === null) return
      this.#readTools(session).catch((error: unknown) => {
        if (this.#closed.signal.aborted) return
        const why = describeError(error)
        this.#config.onWarning(`the list of tools could not be read again: ${why}`)
      })
    }, REFRESH_MS)
  }

  /** The output of a request for the model, failures included. */
  async #output(
    method: string,
    params: JsonObject,
    signal: AbortSignal,
    read: (result: JsonObject) => ToolOutput,
  ): Promise<ToolOutput> {
    try {
      return read(await this.#request(method, params, signal))
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof McpError)) throw error
      return failedCall(error)
    }
  }

  /** The items of a list that the server has now. */
  async #list(method: string, key: string, signal: AbortSignal): Promise<readonly JsonValue[]> {
    const request = (name: string, params: JsonObject): Promise<JsonObject> =>
      this.#request(name, params, signal)
    return await readList(this.name, method, key, MAX_ITEMS, request)
  }

  async #request(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    for (let attempt = 1; ; attempt++) {
      try {
        const session = await raceAbort(this.#connect(), signal)
        const timeoutMs = this.#config.callTimeoutMs
        const result = await session.request(method, params, { signal, timeoutMs })
        this.#failures = 0
        return result
      } catch (error) {
        signal.throwIfAborted()
        if (attempt > 1 || !(error instanceof McpError) || error.problem !== 'session') throw error
      }
    }
  }
}

/** The model reads the failure of a call as its output. */
function failedCall(error: McpError): ToolOutput {
  switch (error.problem) {
    case 'timeout':
      return { output: `${error.message}; whether it did its work is not known`, exitCode: 124 }
    case 'lost':
      return {
        output: `${error.message}. Whether the call did its work is not known.`,
        exitCode: -1,
      }
    default:
      return { output: error.message, exitCode: 1 }
  }
}

/**
 * Reads a list of a server page by page: at most `most` items.
 *
 * @throws McpError for a list without an end.
 */
async function readList(
  server: string,
  method: string,
  key: string,
  most: number,
  request: (method: string, params: JsonObject) => Promise<JsonObject>,
): Promise<readonly JsonValue[]> {
  const list: JsonValue[] = []
  const check = new PageCheck()
  for (let cursor: string | undefined; ; ) {
    const answer = await request(method, cursor === undefined ? {} : { cursor })
    const items: readonly JsonValue[] = Array.isArray(answer[key]) ? answer[key] : []
    list.push(...items.slice(0, most - list.length))
    const next = answer['nextCursor']
    // Some servers end a list with an empty cursor.
    if (typeof next !== 'string' || next === '' || list.length >= most) return list
    const problem = check.problem(next, items.length)
    if (problem !== null) throw new McpError(server, 'protocol', `its ${method} ${problem}`)
    cursor = next
  }
}
