import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { systemClock, type Clock } from '../../internal/time.js'
import type { McpEndpoint } from './http.js'
import { resolveOAuth } from './oauth/options.js'
import type { McpProcess } from './stdio.js'
import { warn } from '../output.js'
import { addArguments, addEndpoint, addVariables } from '../redaction/given.js'
import { redactor } from '../redaction/redactor.js'

/** A tool as its server describes it. Nothing in it can be trusted. */
export interface McpToolInfo {
  /** The server's name for the tool. */
  readonly name: string
  readonly description: string
  /** The server's hints, such as `readOnlyHint`, which prove nothing. */
  readonly annotations: Readonly<Record<string, unknown>>
}

/** Options that both kinds of server share. */
export interface McpServerBase {
  /** 1 to 32 letters, digits, `-` and `_`; prefix of the names of its tools: `name__tool`. */
  readonly name: string
  /**
   * The tools to offer, by the server's names for them; all when omitted. A server can change its
   * tools at any time, so a list is the safer choice.
   */
  readonly tools?: readonly string[] | undefined
  /**
   * Whether a tool may run twice. `read` tools run in parallel, run again after a crash, and need
   * no approval where writes do. The host decides, because a server's annotations prove nothing.
   *
   * @defaultValue 'unsafe'
   */
  readonly effect?: 'read' | 'unsafe' | ((tool: McpToolInfo) => 'read' | 'unsafe') | undefined
  /** Whether the model may list and read the server's resources. @defaultValue true */
  readonly resources?: boolean | undefined
  /** False: the engine opens without an unreachable server, and retries. @defaultValue true */
  readonly required?: boolean | undefined
  /** Milliseconds for the handshake, and for reading the list of tools. @defaultValue 30000 */
  readonly startTimeoutMs?: number | undefined
  /**
   * Milliseconds that a call may take without reporting progress; ten times that in total.
   *
   * @defaultValue 120000
   */
  readonly callTimeoutMs?: number | undefined
  /** Maximum number of tools; further ones are ignored. @defaultValue 64 */
  readonly maxTools?: number | undefined
  /** Bytes of one message; a server that sends more is disconnected. @defaultValue 4 MiB */
  readonly maxMessageBytes?: number | undefined
  /** Reports ignored tools, and errors outside a call. @defaultValue a process warning */
  readonly onWarning?: ((message: string) => void) | undefined
  /** Time, for tests. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
}

/** A Model Context Protocol server: a process to start, or an HTTP address. */
export type McpServerOptions = McpServerBase & (McpProcess | McpEndpoint)

const BASE: OptionKinds<McpServerBase> = {
  name: 'string! a name of letters, digits, - or _', tools: 'array', effect: 'any',
  resources: 'boolean', required: 'boolean', startTimeoutMs: 'number', callTimeoutMs: 'number',
  maxTools: 'number', maxMessageBytes: 'number', onWarning: 'function', clock: 'object',
}
const PROCESS: OptionKinds<McpServerBase & McpProcess> = {
  ...BASE, command: 'string! the program to start', args: 'array', cwd: 'string', env: 'object',
}
const ENDPOINT: OptionKinds<McpServerBase & McpEndpoint> = {
  ...BASE, url: 'string! the http or https URL of the server, unless it is a command',
  bearer: 'any', oauth: 'object', headers: 'object', transport: 'object',
}

/** Options with every default filled in. */
export interface McpServerConfig {
  readonly name: string
  readonly target: McpProcess | McpEndpoint
  /** Null offers all. */
  readonly tools: ReadonlySet<string> | null
  readonly effectOf: (tool: McpToolInfo) => 'read' | 'unsafe'
  readonly resources: boolean
  readonly required: boolean
  readonly startTimeoutMs: number
  readonly callTimeoutMs: number
  readonly maxTools: number
  readonly maxMessageBytes: number
  readonly onWarning: (message: string) => void
  readonly clock: Clock
}

/** Fills in defaults. @throws TypeError that names the invalid option. */
export function resolveMcpServer(options: McpServerOptions): McpServerConfig {
  const isEndpoint = typeof options === 'object' && options !== null && 'url' in options
  if (isEndpoint && 'command' in options)
    throw new TypeError('give an MCP server command or url, not both')
  if (isEndpoint) checkOptions(options, ENDPOINT, 'an MCP server')
  else checkOptions(options, PROCESS, 'an MCP server')
  const { name, tools, effect = 'unsafe' } = options
  if (typeof name !== 'string' || !/^[a-zA-Z][a-zA-Z0-9_-]{0,31}$/.test(name)) {
    const shape =
      "an MCP server's name must be 1 to 32 letters, digits, - or _, and begin with a letter"
    throw new TypeError(`${shape}, got ${JSON.stringify(name)}`)
  }
  const invalid = (what: string): TypeError => new TypeError(`MCP server ${name}: ${what}`)
  if (typeof effect !== 'function' && effect !== 'read' && effect !== 'unsafe') {
    throw invalid(`effect must be 'read', 'unsafe' or a function, got ${JSON.stringify(effect)}`)
  }
  const positive = (option: string, value: number | undefined, otherwise: number): number => {
    if (value === undefined) return otherwise
    if (Number.isInteger(value) && value > 0) return value
    throw invalid(`${option} must be a whole number from 1 up, got ${value}`)
  }
  return {
    name,
    target: resolveTarget(options, invalid),
    tools: tools === undefined ? null : new Set(tools),
    effectOf: typeof effect === 'function' ? effect : () => effect,
    resources: options.resources ?? true,
    required: options.required ?? true,
    startTimeoutMs: positive('startTimeoutMs', options.startTimeoutMs, 30_000),
    callTimeoutMs: positive('callTimeoutMs', options.callTimeoutMs, 120_000),
    maxTools: positive('maxTools', options.maxTools, 64),
    maxMessageBytes: positive('maxMessageBytes', options.maxMessageBytes, 4 << 20),
    onWarning: options.onWarning === undefined ? warn : redacting(options.onWarning),
    clock: options.clock ?? systemClock,
  }
}

function redacting(report: (message: string) => void): (message: string) => void {
  return (message) => report(redactor.text(message))
}

function resolveTarget(
  options: McpServerOptions,
  invalid: (what: string) => TypeError,
): McpProcess | McpEndpoint {
  if ('command' in options) {
    if (typeof options.command !== 'string' || options.command === '')
      throw invalid('command must name a program')
    const { command, args = [], cwd, env = {} } = options
    addVariables(env)
    addArguments(args)
    return { command, args: [...args], cwd, env: { ...env } }
  }
  const url =
    typeof options.url === 'string' && URL.canParse(options.url) ? new URL(options.url) : null
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.password !== ''
  ) {
    throw invalid('url must be an http or https URL without a password, or give command')
  }
  const { bearer, oauth, headers = {}, transport } = options
  if (bearer !== undefined && oauth !== undefined) throw invalid('give bearer or oauth, not both')
  if (typeof bearer === 'string' && !/^[\x21-\x7e]+$/.test(bearer)) {
    throw invalid('bearer must be a token of visible ASCII characters, without blanks')
  }
  addEndpoint({
    apiKey: typeof bearer === 'string' ? bearer : undefined,
    baseUrl: url.href,
    headers,
  })
  return {
    url: url.href,
    bearer,
    oauth: oauth && resolveOAuth(oauth, url, invalid),
    headers: { ...headers },
    transport,
  }
}
