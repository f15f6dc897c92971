import type { Clock } from '../../internal/time.js'
import { describeError } from '../../internal/errors.js'
import type { Tool } from '../tool.js'
import { resolveMcpServer, type McpServerConfig, type McpServerOptions } from './options.js'
import { READ_RESOURCE, readResourceTool, type McpPromptInfo } from './resources.js'
import type { McpServer } from './server.js'

/** The options of an engine that name tools. */
interface EngineTools {
  readonly mcpServers?: readonly McpServerOptions[] | undefined
  readonly tools?: readonly Tool[] | undefined
}

/** Fills in defaults. @throws TypeError for an invalid option, or for a duplicate name. */
export function resolveMcpServers(
  { mcpServers = [], tools = [] }: EngineTools,
  clock: Clock,
): readonly McpServerConfig[] {
  const configs = mcpServers.map((options) => resolveMcpServer({ clock, ...options }))
  const names = configs.map(({ name }) => name)
  if (configs.length > 0 && tools.some(({ name }) => name === READ_RESOURCE)) {
    const why = `tool ${READ_RESOURCE} is named like the one that reads resources of MCP servers`
    throw new TypeError(why)
  }
  for (const [i, name] of names.entries()) {
    if (names.indexOf(name) < i)
      throw new TypeError(`there are two MCP servers with the name ${name}`)
    // Whatever tools the servers have, then or later, no name can be that of another tool.
    const other = names.find((one) => one !== name && `${one}__`.startsWith(`${name}__`))
    if (other !== undefined) {
      throw new TypeError(`tools of the MCP servers ${name} and ${other} could have the same name`)
    }
    const tool = tools.find((one) => one.name.startsWith(`${name}__`))
    if (tool !== undefined) {
      throw new TypeError(`tool ${tool.name} is named like tools of the MCP server ${name}`)
    }
  }
  return configs
}

/** The servers of an engine, which are opened and closed with it. */
export class McpServers {
  readonly #configs: readonly McpServerConfig[]
  readonly #servers: readonly McpServer[]

  private constructor(configs: readonly McpServerConfig[], servers: readonly McpServer[]) {
    this.#configs = configs
    this.#servers = servers
  }

  /** Opens all servers in parallel. @throws McpError when a required one cannot be reached. */
  static async open(configs: readonly McpServerConfig[]): Promise<McpServers> {
    const servers = new McpServers(configs, await createServers(configs))
    const opened = await Promise.allSettled(servers.#servers.map((server) => server.open()))
    for (const [i, outcome] of opened.entries()) {
      if (outcome.status === 'fulfilled') continue
      const config = configs[i]
      if (config?.required !== false) {
        await servers.close()
        throw outcome.reason
      }
      config.onWarning(
        describeError(outcome.reason),
      )
    }
    return servers
  }

  /** Adds the servers' current tools to `own`; {@link resolveMcpServers} keeps names distinct. */
  join(own: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
    if (this.#servers.length === 0) return own
    for (const server of this.#servers) server.retry()
    const theirs = this.#servers.flatMap((server) => server.tools())
    const sources = this.#servers.filter(({ hasResources }) => hasResources)
    if (sources.length > 0) theirs.push(readResourceTool(sources))
    return new Map([...own, ...theirs.map((tool) => [tool.name, tool] as const)])
  }

  /** The prompts of all servers; one that fails is reported and left out. */
  async prompts(): Promise<readonly McpPromptInfo[]> {
    const listed = this.#servers.map((server, i) =>
      server.prompts().catch((error: unknown) => {
        const why = describeError(error)
        this.#configs[i]?.onWarning(`the list of prompts could not be read: ${why}`)
        return []
      }),
    )
    return (await Promise.all(listed)).flat()
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()))
  }
}

/** Loads the code for MCP if there are servers. */
async function createServers(configs: readonly McpServerConfig[]): Promise<readonly McpServer[]> {
  if (configs.length === 0) return []
  const { McpServer } = await import('./server.js')
  return configs.map((config) => new McpServer(config))
}
