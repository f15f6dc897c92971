import { MAX_TOOL_OUTPUT_BYTES } from './answers.js'
import type { Tool } from '../tool.js'
import { defineTool } from './define.js'

const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000

/** `bash`: runs a command line in the workspace. */
export const bashTool: Tool = defineTool({
  name: 'bash',
  description:
    'Runs a command line with /bin/sh in the working directory and returns its exit code and its ' +
    'output (standard output and standard error together; of long output the beginning and the ' +
    'end). Each call starts a new shell: directory and variables do not carry over. There is no ' +
    'standard input and no terminal. Send the output of background programs to a file.',
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', description: 'The command line.', minLength: 1 },
      timeout_ms: {
        type: 'integer',
        description: `Milliseconds until the command is ended. Default ${DEFAULT_TIMEOUT_MS}.`,
        minimum: 1,
        maximum: MAX_TIMEOUT_MS,
      },
    },
    required: ['command'],
    additionalProperties: false,
  },
  effect: 'unsafe',
  needsFolder: true,
  startsProcess: true,
  commands: ({ command }) => [command as string],
  async execute({ command, timeout_ms: timeoutMs = DEFAULT_TIMEOUT_MS }, context) {
    const { output, exitCode, timedOut } = await context.run(command, {
      timeoutMs,
      maxOutputBytes: MAX_TOOL_OUTPUT_BYTES,
    })
    if (!timedOut) return { output, exitCode }
    const gap = output === '' || output.endsWith('\n') ? '' : '\n'
    const note = `[ended because it took longer than ${timeoutMs} ms]`
    return { output: `${output}${gap}${note}`, exitCode }
  },
})
