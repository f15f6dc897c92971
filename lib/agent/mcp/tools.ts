/**
 * Converts a server's list of tools: safe and distinct names, bounded descriptions, and schemas
 * that the engine can check.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { clip } from '../output.js'
import { redactor } from '../redaction/redactor.js'
import type { JsonSchema } from '../schema.js'
import type { Tool, ToolContext, ToolOutput } from '../tool.js'
import type { McpServerConfig, McpToolInfo } from './options.js'
import { importSchema } from './schema-import.js'

/** Characters of a tool's description, since it is sent with every model call. */
const MAX_DESCRIPTION = 2_000
/** Characters of the server's name for a tool; tools with longer names are skipped. */
const MAX_NAME = 256

/** What a call needs to know of a tool. */
export interface RemoteTool {
  readonly name: string
  readonly outputSchema: JsonSchema | null
}

/** Calls a tool at its server. */
export type RemoteCall = (
  tool: RemoteTool,
  args: JsonObject,
  context: ToolContext,
) => Promise<ToolOutput>

/** The tools that the configuration allows; `config.onWarning` reports the ones left out. */
export function buildTools(
  list: readonly JsonValue[],
  config: McpServerConfig,
  call: RemoteCall,
): Tool[] {
  const tools = new Map<string, Tool>()
  const omit = (what: string): void => config.onWarning(`MCP server ${config.name}: ${what}`)
  const warnOfUnchecked = (what: string, rules: readonly string[]): void => {
    if (rules.length === 0) return
    const more = rules.length > 3 ? `; and ${rules.length - 3} more` : ''
    omit(`in ${what}, rules are not checked here: ${rules.slice(0, 3).join('; ')}${more}`)
  }
  const readOutputSchema = (schema: JsonValue | undefined, about: string): JsonSchema | null => {
    if (schema === undefined) return null
    const imported = importSchema(schema, false)
    if (imported.schema === null) {
      omit(`the output schema of its tool ${about} ${imported.problem}; results are not checked`)
      return null
    }
    warnOfUnchecked(`the output schema of its tool ${about}`, imported.unchecked)
    return imported.schema
  }
  const seen = new Set<string>()
  const asTasks: string[] = []
  for (const entry of list) {
    const info = isJsonObject(entry) ? readInfo(entry) : null
    if (info === null || seen.has(info.name)) continue
    seen.add(info.name)
    if (config.tools !== null && !config.tools.has(info.name)) continue
    if (tools.size >= config.maxTools) {
      omit(`it has more than ${config.maxTools} tools; the rest is left out`)
      break
    }
    if (needsTask(entry as JsonObject)) {
      asTasks.push(JSON.stringify(info.name))
      continue
    }
    const { inputSchema = { type: 'object' }, outputSchema } = entry as JsonObject
    const about = JSON.stringify(info.name)
    const parameters = importSchema(inputSchema, true)
    if (parameters.schema === null) {
      omit(`the schema of its tool ${about} ${parameters.problem}; the tool is left out`)
      continue
    }
    warnOfUnchecked(`the schema of its tool ${about}`, parameters.unchecked)
    const remote: RemoteTool = {
      name: info.name,
      outputSchema: readOutputSchema(outputSchema, about),
    }
    const name = toolName(config.name, info.name, tools)
    tools.set(name, {
      name,
      description: info.description,
      parameters: parameters.schema,
      effect: config.effectOf(info) === 'read' ? 'read' : 'unsafe',
      changesFiles: true,
      execute: (args, context) => call(remote, args, context),
    })
  }
  if (asTasks.length > 0) {
    const names = clip(asTasks.join(', '), MAX_DESCRIPTION)
    omit(`tools that can only be called as tasks are left out: ${names}`)
  }
  for (const name of config.tools ?? [])
    if (!seen.has(name)) omit(`it has no tool ${JSON.stringify(name)}`)
  return [...tools.values()]
}

/** Such a tool refuses ordinary calls; tasks of the protocol are not supported here. */
function needsTask({ execution }: JsonObject): boolean {
  return isJsonObject(execution) && execution['taskSupport'] === 'required'
}

function readInfo(entry: JsonObject): McpToolInfo | null {
  const { name, title, description, annotations } = entry
  if (typeof name !== 'string' || name === '' || name.length > MAX_NAME) return null
  // It could be neither logged nor called.
  if (redactor.finds(name)) return null
  const text = [description, title].find((one) => typeof one === 'string' && one.trim() !== '')
  return {
    name,
    description: cleanText(typeof text === 'string' ? text : `The tool ${name}.`),
    annotations: isJsonObject(annotations) ? annotations : {},
  }
}

/** Removes control and bidirectional formatting characters, and truncates. */
function cleanText(text: string): string {
  const clean = text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, ' ').trim()
  return clip(clean, MAX_DESCRIPTION)
}

/** `server__tool`; with a hash if it is longer than 64 characters, was altered, or is taken. */
function toolName(server: string, tool: string, taken: ReadonlyMap<string, unknown>): string {
  const plain = `${server}__${tool.replace(/[^a-zA-Z0-9_-]/g, '_')}`
  const exact = plain.endsWith(`__${tool}`) && plain.length <= 64
  if (exact && !taken.has(plain)) return plain
  return `${plain.slice(0, 55)}_${hash('sha256', tool).slice(0, 8)}`
}
