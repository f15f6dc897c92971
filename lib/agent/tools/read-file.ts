import { showPath } from '../../internal/text.js'
import { imageType, MAX_IMAGE_BYTES } from '../images.js'
import { firstBytes } from '../output.js'
import { redactor } from '../redaction/redactor.js'
import type { Tool, ToolOutput } from '../tool.js'
import { decodeText } from '../workspace/text.js'
import { answer, answering, MAX_TOOL_OUTPUT_BYTES, refusal } from './answers.js'
import { defineTool } from './define.js'

const MAX_FILE_BYTES = 8 * 1024 * 1024
/** Room for the note on what was left out. */
const NOTE_BYTES = 256

/** `read_file`: the text of a file, or of some of its lines. */
export const readFileTool: Tool = defineTool({
  name: 'read_file',
  description:
    'Returns the text of a file unchanged. For a long file it returns the first 64 kB and a note ' +
    'on how to read on; offset and limit select lines. Shows a PNG, JPEG, GIF or WebP image.',
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the working directory.', minLength: 1 },
      offset: { type: 'integer', description: 'First line, from 1. Default: 1.', minimum: 1 },
      limit: { type: 'integer', description: 'Number of lines. Default: all.', minimum: 1 },
    },
    required: ['path'],
    additionalProperties: false,
  },
  effect: 'read',
  needsFolder: true,
  async execute({ path, offset = 1, limit }, context) {
    return await answering(context, async () => {
      const content = await context.workspace.readFile(path, { maxBytes: MAX_FILE_BYTES })
      const text = decodeText(content)
      if (text === null && imageType(content) !== null && content.length <= MAX_IMAGE_BYTES) {
        const file = { mediaType: '', data: content, name: showPath(path) }
        return { output: '', exitCode: 0, files: [file] }
      }
      if (text === null) {
        return refusal(
          `${showPath(path)} is not UTF-8 text (${content.length} bytes); ` +
            'use a command that knows its format',
        )
      }
      // Some lines of a key could not be recognized.
      return selectLines(redactor.lines(text), path, offset, limit)
    })
  },
})

function selectLines(
  text: string,
  path: string,
  offset: number,
  limit: number | undefined,
): ToolOutput {
  const lines = text === '' ? [] : text.split(/(?<=\n)/)
  if (offset > Math.max(lines.length, 1)) {
    return refusal(`${showPath(path)} has ${lines.length} lines; offset ${offset} is beyond them`)
  }
  const wanted = lines.slice(offset - 1, limit === undefined ? undefined : offset - 1 + limit)
  let [shown, bytes] = [0, 0]
  for (const line of wanted) {
    bytes += Buffer.byteLength(line)
    if (bytes > MAX_TOOL_OUTPUT_BYTES - NOTE_BYTES) break
    shown += 1
  }
  if (shown === wanted.length) return answer(wanted.join(''))
  const next = offset + shown
  if (shown === 0) {
    const whole = firstBytes(wanted[0] ?? '', MAX_TOOL_OUTPUT_BYTES - NOTE_BYTES)
    return answer(`${whole}\n[… the rest of line ${offset} is left out: it is too long …]`)
  }
  return answer(
    `${wanted.slice(0, shown).join('')}` +
      `[… lines ${next} to ${offset + wanted.length - 1} of ${lines.length} are left out; ` +
      `read on with offset ${next} …]`,
  )
}
