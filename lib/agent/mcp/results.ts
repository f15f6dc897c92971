/**
 * Converts the result of an MCP tool into text for the model.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { clip } from '../output.js'
import { checkSchema } from '../check-schema.js'
import type { JsonSchema } from '../schema.js'
import { decodeBase64, imageType, MAX_IMAGE_BYTES } from '../images.js'
import type { ToolFile, ToolOutput } from '../tool.js'

/** Parts of one result that are read. */
const MAX_PARTS = 1_000

/**
 * The output of a call. Images are its files; audio and other binary resources, and what is no
 * image that models take, are replaced by their type and size.
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
  if (structured !== undefined && !hasText) texts.push(structuredText(structured))
  const output = texts.filter((text) => text !== '').join('\n')
  const files = parts.slice(0, MAX_PARTS).flatMap(imageFiles)
  const seen = files.length === 0 ? {} : { files }
  if (isError === true && files.length === 0)
    return { output: output === '' ? 'the tool failed and said nothing' : output, exitCode: 1 }
  if (isError === true) return { output, exitCode: 1, ...seen }
  if (outputSchema !== null && structured !== undefined) {
    const [violation] = checkSchema(outputSchema, structured)
    if (violation !== undefined) {
      const { pointer, detail } = violation
      const where = pointer === '' ? 'its result' : pointer
      return {
        output: `${output}\n[the tool broke its own output schema: ${where} ${detail}]`,
        exitCode: 1,
        ...seen,
      }
    }
  }
  return { output, exitCode: 0, ...seen }
}

function structuredText(value: JsonValue): string {
  try {
    return JSON.stringify(value)
  } catch {
    return '[structured content, nested too deeply to be shown]'
  }
}

/** The output of a read: text, also if it is sent as binary data; the size of anything else. */
export function readResourceResult({ contents }: JsonObject): ToolOutput {
  const parts = Array.isArray(contents) ? contents : []
  const texts = parts
    .slice(0, MAX_PARTS)
    .map((part: JsonValue) => (isJsonObject(part) ? resourceText(part) : ''))
  if (parts.length > MAX_PARTS) texts.push(`[${parts.length - MAX_PARTS} more parts]`)
  const files = parts.slice(0, MAX_PARTS).flatMap(imageFiles)
  const output = texts.filter((text) => text !== '').join('\n')
  return { output, exitCode: 0, ...(files.length > 0 && { files }) }
}

/** The image that a part is, of those that models take; none for any other part. */
function imageFiles(part: JsonValue): readonly ToolFile[] {
  if (!isJsonObject(part)) return []
  const { resource } = part
  const source = isJsonObject(resource) ? resource : part
  const { blob, data = blob, mimeType, uri } = source
  if (!isImage(data)) return []
  const name = typeof uri === 'string' ? { name: uri } : {}
  return [{ mediaType: textOf(mimeType), data: data as string, ...name }]
}

/** Its beginning tells, before all of it is decoded. */
function isImage(data: JsonValue | undefined): boolean {
  const text = textOf(data)
  if (imageType(Buffer.from(text.slice(0, 16), 'base64')) === null) return false
  return decodedLength(text) <= MAX_IMAGE_BYTES && decodeBase64(text) !== null
}

function partText(part: JsonObject): string {
  switch (part['type']) {
    case 'text':
      return textOf(part['text'])
    case 'image':
    case 'audio':
      if (isImage(part['data'])) return ''
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
  return isImage(blob) ? '' : `${head}, ${decodedLength(blob)} bytes]`
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
