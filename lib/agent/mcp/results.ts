/**
 * Converts the result of an MCP tool into text for the model.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { clip } from '../output.js'
import { checkSchema } from '../check-schema.js'
import type { JsonSchema } from '../schema.js'
import type { ToolOutput } from '../tool.js'

/** Parts of one result that are read. */
const MAX_PARTS = 1_000

/**
 * The output of a call. Images, audio and binary resources are replaced by their type and size.
 * Structured content is used when there is no text, and must match the tool's output schema.
 */
export function readCallResult(result: JsonObject, outputSchema: JsonSchema | null): ToolOutput {
  const { content, structuredContent: structured, isError } = result
  const parts = Array.isArray(content) ? content : []
  const texts = parts
    .slice(0, MAX_PARTS)
    .map((part: JsonValue) => (isJsonObject(part) ? partText(part) : ''))
  if (parts.length > MAX_PARTS) texts.push(`[${parts.length - MAX_PARTS} more parts]`)
  const hasText = parts.some((part: JsonValue) => isJsonObject(part) && part['type'] === 'text')
  if (structured !== undefined && !hasText) texts.push(JSON.stringify(structured))
  const output = texts.filter((text) => text !== '').join('\n')
  if (isError === true)
    return { output: output === '' ? 'the tool failed and said nothing' : output, exitCode: 1 }
  if (outputSchema !== null && structured !== undefined) {
    const [violation] = checkSchema(outputSchema, structured)
    if (violation !== undefined) {
      const { pointer, detail } = violation
      const where = pointer === '' ? 'its result' : pointer
      return {
        output: `${output}\n[the tool broke its own output schema: ${where} ${detail}]`,
        exitCode: 1,
      }
    }
  }
  return { output, exitCode: 0 }
}

/** The output of a read: text, also if it is sent as binary data; the size of anything else. */
export function readResourceResult({ contents }: JsonObject): ToolOutput {
  const parts = Array.isArray(contents) ? contents : []
  const texts = parts
    .slice(0, MAX_PARTS)
    .map((part: JsonValue) => (isJsonObject(part) ? resourceText(part) : ''))
  if (parts.length > MAX_PARTS) texts.push(`[${parts.length - MAX_PARTS} more parts]`)
  return { output: texts.join('\n'), exitCode: 0 }
}

function partText(part: JsonObject): string {
  switch (part['type']) {
    case 'text':
      return textOf(part['text'])
    case 'image':
    case 'audio':
      return `[${part['type']} ${label(part['mimeType'])}, ${decodedLength(part['data'])} bytes]`
    case 'resource':
      return resourceText(isJsonObject(part['resource']) ? part['resource'] : {})
    case 'resource_link':
      return `[link to ${label(part['uri'])} ${label(part['name'])}]`
    default:
      return `[a part of kind ${label(part['type'])}]`
  }
}

function resourceText({ uri, mimeType, text, blob }: JsonObject): string {
  const head = `[resource ${label(uri)} ${label(mimeType)}`
  if (textOf(text) !== '') return `${head}]\n${textOf(text)}`
  if (/^text\/|[/+](?:json|xml|yaml)$/i.test(textOf(mimeType)) && textOf(blob) !== '')
    return `${head}]\n${Buffer.from(textOf(blob), 'base64').toString('utf8')}`
  return `${head}, ${decodedLength(blob)} bytes]`
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Untrusted text as one short line of ASCII. */
function label(value: JsonValue | undefined): string {
  return clip(textOf(value), 200).replace(/[^\x20-\x7e]/g, '?')
}

/** Number of bytes that base64 text encodes. */
function decodedLength(value: JsonValue | undefined): number {
  const text = textOf(value)
  return Math.floor((text.length * 3) / 4) - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0)
}
