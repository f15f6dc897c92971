/**
 * A run with tools of a Model Context Protocol server: `node --import tsx examples/mcp-tools.ts`.
 *
 * The server is this file itself, started as a process: a dozen lines that implement the protocol
 * over standard input and output. The model is a script, so nothing else is needed.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { MemoryStore, RunEngine, type AgentEvent } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'

if (process.argv[2] === 'serve') serve()
else await main()

async function main(): Promise<void> {
  const model = new ScriptedModel([
    { calls: [{ tool: 'words__count', args: { text: 'to be or not to be' } }] },
    { calls: [{ tool: 'write_file', args: { path: 'count.txt', content: '6\n' } }] },
    { text: 'The count is in count.txt.', expect: { tool_results: 1 } },
  ])
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-mcp-')))
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [scratch],
    providers: [
      {
        id: 'script',
        description: 'a script',
        isLanguageModel: false,
        suggestions: ['it'],
        create: () => model,
      },
    ],
    defaultModel: 'script:it',
    mcpServers: [
      {
        name: 'words',
        command: process.execPath,
        args: [...process.execArgv, fileURLToPath(import.meta.url), 'serve'],
        // The default is stricter; this tool is known to change nothing.
        effect: 'read',
      },
    ],
  })
  try {
    const { details } = await engine.create({ goal: 'shell: grep -qx 6 count.txt' })
    for await (const batch of await engine.subscribe(details.run_id)) {
      for (const { json } of batch) print(JSON.parse(json) as AgentEvent)
    }
  } finally {
    await engine.close() // also stops the MCP server
    rmSync(scratch, { recursive: true })
  }
}

function print(event: AgentEvent): void {
  if (event.kind === 'tool_call') console.log('call   ', event.payload.tool, event.payload.args)
  if (event.kind === 'tool_result') console.log('result ', event.payload.output.trim())
  if (event.kind === 'run_end') console.log('end    ', event.payload.status, event.payload.reason)
}

/** A server with one tool. Real servers use an SDK. */
function serve(): void {
  const parameters = {
    type: 'object',
    properties: { text: { type: 'string' } },
    required: ['text'],
  }
  const tool = {
    name: 'count',
    description: 'Counts the words of a text.',
    inputSchema: parameters,
  }
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    const answer = (result: object): boolean =>
      process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
    if (method === 'initialize') {
      answer({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'words', version: '1.0.0' },
      })
    } else if (method === 'tools/list') answer({ tools: [tool] })
    else if (method === 'tools/call') {
      const words = String(params.arguments.text).split(/\s+/).filter(Boolean)
      answer({ content: [{ type: 'text', text: `${words.length}` }] })
    }
  })
}
