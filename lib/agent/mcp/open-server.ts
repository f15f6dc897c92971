import { resolveMcpServer, type McpServerOptions } from './options.js'
import type { McpServer } from './server.js'

/**
 * Connects to a Model Context Protocol server and reads its tools, for hosts that manage servers
 * themselves; the engine does it for those in `mcpServers`. Close it after the engine.
 *
 * @throws TypeError for an invalid option; `McpError` when the server cannot be reached.
 *
 * @example
 * ```ts
 * const files = await openMcpServer({ name: 'files', command: 'node', args: ['server.js'] })
 * const engine = await RunEngine.open({ store, roots, tools: files.tools() })
 * ```
 */
export async function openMcpServer(options: McpServerOptions): Promise<McpServer> {
  const config = resolveMcpServer(options)
  const { McpServer } = await import('./server.js')
  const server = new McpServer(config)
  try {
    await server.open()
  } catch (error) {
    await server.close()
    throw error
  }
  return server
}
