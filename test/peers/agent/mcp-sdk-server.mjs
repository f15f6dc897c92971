/** A server made with the official SDK, over standard input and output. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

export function makeServer() {
  const server = new McpServer({ name: 'sdk', version: '1.0.0' }, { capabilities: { logging: {} } })
  server.registerTool(
    'add',
    {
      description: 'Adds two numbers.',
      inputSchema: { a: z.number(), b: z.number().int() },
      outputSchema: { sum: z.number() },
      annotations: { readOnlyHint: true },
    },
    ({ a, b }) => ({
      content: [{ type: 'text', text: `${a + b}` }],
      structuredContent: { sum: a + b },
    }),
  )
  server.registerTool('throw', { description: 'Fails.' }, () => {
    throw new Error('as intended')
  })
  server.registerTool(
    'long',
    { inputSchema: { steps: z.number() } },
    async ({ steps }, { _meta, sendNotification, signal }) => {
      for (let progress = 1; progress <= steps && !signal.aborted; progress++) {
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken: _meta.progressToken, progress, total: steps },
        })
      }
      return { content: [{ type: 'text', text: 'done' }] }
    },
  )
  server.registerTool(
    'hang',
    {},
    (extra) =>
      new Promise((resolve) => {
        process.emit('mcp-hanging')
        extra.signal.addEventListener('abort', () => {
          process.emit('mcp-cancelled')
          resolve({ content: [] })
        })
      }),
  )
  server.registerTool('grow', {}, () => {
    server.registerTool('grown', {}, () => ({ content: [] }))
    return { content: [{ type: 'text', text: 'grown' }] }
  })
  server.registerTool('poll', {}, async ({ closeSSEStream }) => {
    closeSSEStream?.()
    return { content: [{ type: 'text', text: 'sent later' }] }
  })
  return server
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await makeServer().connect(new StdioServerTransport())
}
