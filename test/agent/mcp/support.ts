import { fileURLToPath } from 'node:url'
import type { TestContext } from 'node:test'
import {
  openMcpServer,
  type JsonObject,
  type McpServer,
  type McpServerOptions,
  type ToolContext,
  type ToolOutput,
  type Workspace,
} from 'runwright/agent'

export const TINY: string = fileURLToPath(new URL('tiny-server.mjs', import.meta.url))

/** Options for the tiny server; its modes are in `tiny-server.mjs`. */
export function tiny(mode: string, more: Partial<McpServerOptions> = {}): McpServerOptions {
  return {
    name: 'tiny',
    command: process.execPath,
    args: [TINY, mode],
    ...more,
  } as McpServerOptions
}

/** Opens a server, and closes it after the test. */
export async function open(t: TestContext, options: McpServerOptions): Promise<McpServer> {
  const server = await openMcpServer(options)
  t.after(() => server.close())
  return server
}

/** Calls a tool as the engine does, by the server's name for it. */
export async function call(
  server: McpServer,
  name: string,
  args: JsonObject = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<ToolOutput> {
  const tool = server.tools().find((one) => one.name === `${server.name}__${name}`)
  if (tool === undefined) throw new Error(`no tool ${name}`)
  const context: ToolContext = {
    runId: 'r',
    callId: 'c',
    workspace: {} as Workspace,
    signal,
    run: () => Promise.reject(new Error('not here')),
    startRun: () => Promise.reject(new Error('not here')),
    copies: { slots: 1, open: () => Promise.reject(new Error('not here')) },
  }
  return await tool.execute(args, context)
}
