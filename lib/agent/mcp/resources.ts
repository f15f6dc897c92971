/**
 * Resources and prompts of servers: what they list, read from untrusted JSON, and the tool with
 * which a model lists and reads resources.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { clip } from '../output.js'
import type { Tool, ToolOutput } from '../tool.js'

/** A resource of a server, or a template of the URIs of many. Nothing in it can be trusted. */
export interface McpResourceInfo {
  /** The URI or, if `isTemplate`, a template of RFC 6570 such as `file:///{path}`. */
  readonly uri: string
  readonly isTemplate: boolean
  readonly name: string
  /** Empty if the server gives none. */
  readonly description: string
  /** Empty if the server gives none. */
  readonly mimeType: string
}

/** A prompt that a server offers to people. Nothing in it can be trusted. */
export interface McpPromptInfo {
  /** Name of the server in the options of the engine. */
  readonly server: string
  readonly name: string
  /** Empty if the server gives none. */
  readonly description: string
  readonly arguments: readonly {
    readonly name: string
    readonly description: string
    readonly required: boolean
  }[]
}

/** Where the tool finds resources: a server. */
export interface ResourceSource {
  readonly name: string
  resources(signal?: AbortSignal): Promise<readonly McpResourceInfo[]>
  readResource(uri: string, signal: AbortSignal): Promise<ToolOutput>
}

/** The tool's name, which no tool of the host can have beside MCP servers. */
export const READ_RESOURCE = 'read_resource'

/** Characters of a URI; resources with longer ones are skipped. */
const MAX_URI = 2_000
/** Characters of a name or a media type. */
const MAX_NAME = 200
/** Characters of a description. */
const MAX_DESCRIPTION = 300
/** Arguments of a prompt that are read. */
const MAX_ARGUMENTS = 50

/** The resources of a list, or null for an entry that has no URI. */
export function readResourceInfo(entry: JsonValue): McpResourceInfo | null {
  if (!isJsonObject(entry)) return null
  const isTemplate = typeof entry['uri'] !== 'string'
  const uri = isTemplate ? entry['uriTemplate'] : entry['uri']
  if (typeof uri !== 'string' || uri === '' || uri.length > MAX_URI) return null
  return {
    uri: line(uri, MAX_URI),
    isTemplate,
    name: line(entry['title'] ?? entry['name'], MAX_NAME),
    description: line(entry['description'], MAX_DESCRIPTION),
    mimeType: line(entry['mimeType'], MAX_NAME),
  }
}

/** A prompt of the server's list, or null for an entry without a name. */
export function readPromptInfo(server: string, entry: JsonValue): McpPromptInfo | null {
  if (!isJsonObject(entry)) return null
  const { name, description } = entry
  if (typeof name !== 'string' || name === '' || name.length > MAX_NAME) return null
  const given = Array.isArray(entry['arguments']) ? entry['arguments'] : []
  return {
    server,
    name: line(name, MAX_NAME),
    description: line(description, MAX_DESCRIPTION),
    arguments: given
      .slice(0, MAX_ARGUMENTS)
      .filter((one: JsonValue): one is JsonObject => isJsonObject(one))
      .map((one) => ({
        name: line(one['name'], MAX_NAME),
        description: line(one['description'], MAX_DESCRIPTION),
        required: one['required'] === true,
      })),
  }
}

/** The tool for the resources of these servers, at least one. */
export function readResourceTool(sources: readonly ResourceSource[]): Tool {
  return {
    name: READ_RESOURCE,
    description:
      'Reads a resource of a Model Context Protocol server. Without uri, lists the resources of ' +
      'the server, and the templates of the URIs of further ones.',
    parameters: {
      type: 'object',
      properties: {
        server: { type: 'string', enum: sources.map(({ name }) => name) },
        uri: { type: 'string', minLength: 1, maxLength: MAX_URI },
      },
      required: ['server'],
      additionalProperties: false,
    },
    effect: 'read',
    execute: async ({ server, uri }, { signal }) => {
      const source = sources.find(({ name }) => name === server)
      if (source === undefined)
        return { output: `there is no server ${String(server)}`, exitCode: 1 }
      if (typeof uri === 'string') return await source.readResource(uri, signal)
      const list = await source.resources(signal)
      const output = list.map(describe).join('\n')
      return { output: output === '' ? 'the server lists no resources' : output, exitCode: 0 }
    },
  }
}

function describe({ uri, isTemplate, name, mimeType, description }: McpResourceInfo): string {
  const about = [name, mimeType, description].filter((text) => text !== '').join('; ')
  return `${isTemplate ? 'template ' : ''}${uri}${about === '' ? '' : ` (${about})`}`
}

/** Untrusted text as one line, without control and bidirectional formatting characters. */
function line(value: JsonValue | undefined, most: number): string {
  const text = typeof value === 'string' ? value : ''
  return clip(text.replace(/[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, ' ').trim(), most)
}
