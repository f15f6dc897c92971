import assert from 'node:assert/strict'
import { checkArguments, type JsonObject, type Tool, type ToolContext } from 'runwright/agent'
import { builtinTools } from '../../../lib/agent/tools/builtin.js'

const tools = new Map(builtinTools().map((tool) => [tool.name, tool]))

export function toolNamed(name: string): Tool {
  const tool = tools.get(name)
  assert.ok(tool, `there is no tool ${name}`)
  return tool
}

/** Calls a tool as the engine does; returns `exit code: output`. */
export async function call(context: ToolContext, name: string, args: JsonObject): Promise<string> {
  assert.equal(checkArguments(toolNamed(name), args), null)
  const { exitCode, output } = await toolNamed(name).execute(args, context)
  return `${exitCode}: ${output}`
}
