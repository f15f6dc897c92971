import type { Clock } from '../../internal/clock.js'
import type { Tool } from '../tool.js'
import { resolveMcpServer, type McpServerConfig, type McpServerOptions } from './options.js'
import { McpServer } from './server.js'

/** Fills in defaults. @throws TypeError for an invalid option, or for a duplicate name. */
export function resolveMcpServers(
  list: readonly McpServerOptions[],
  clock: Clock,
): readonly McpServerConfig[] {
  const names = new Set<string>()
  return list.map((options) => {
    const config = resolveMcpServer({ clock, ...options })
    if (names.has(config.name))
      throw new TypeError(`there are two MCP servers with the name ${config.name}`)
    names.add(config.name)
    return config
  })
}

/** The servers of an engine, which are opened and closed with it. */
export class McpServers {
  readonly #servers: readonly McpServer[]

  private constructor(servers: readonly McpServer[]) {
    this.#servers = servers
  }

  /** Opens all servers in parallel. @throws McpError when a required one cannot be reached. */
  static async open(configs: readonly McpServerConfig[]): Promise<McpServers> {
    const servers = new McpServers(configs.map((config) => new McpServer(config)))
    const opened = await Promise.allSettled(servers.#servers.map((server) => server.open()))
    for (const [i, outcome] of opened.entries()) {
      if (outcome.status === 'fulfilled') continue
      const config = configs[i]
      if (config?.required !== false) {
        await servers.close()
        throw outcome.reason
      }
      config.onWarning(
        outcome.reason instanceof Error ? outcome.reason.message : String(outcome.reason),
      )
    }
    return servers
  }

  /** Adds the servers' current tools to `own`, whose tools win where names are the same. */
  join(own: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
    if (this.#servers.length === 0) return own
    for (const server of this.#servers) server.retry()
    const theirs = this.#servers.flatMap((server) => server.tools())
    return new Map([
      ...own,
      ...theirs.filter(({ name }) => !own.has(name)).map((tool) => [tool.name, tool] as const),
    ])
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()))
  }
}
