import { describeError } from '../../internal/errors.js'
import type { JsonObject } from '../../internal/json.js'
import type { Tool } from '../tool.js'
import { bashTool } from './bash.js'
import { editFileTool } from './edit-file.js'
import { listFilesTool } from './list-files.js'
import { readFileTool } from './read-file.js'
import { searchFilesTool } from './search-files.js'
import { updatePlanTool } from './update-plan.js'
import { writeFileTool } from './write-file.js'

/** The tools of every run: a shell, the files of the workspace, and a plan. */
export function builtinTools(): readonly Tool[] {
  return [
    bashTool, readFileTool, writeFileTool, editFileTool, listFilesTool, searchFilesTool,
    updatePlanTool,
  ]
}

/** The command that checks a goal, as a model has written it; null for a goal without one. */
export type CommandOfGoal = (goal: string) => string | null

/** The command lines of a model that a call would run, as far as its tool says. */
export function commandsOf(
  tool: Tool,
  args: JsonObject,
  commandOfGoal: CommandOfGoal,
): readonly string[] {
  try {
    return tool.commands?.(args, commandOfGoal) ?? []
  } catch (error) {
    // An unknown command: a human is asked about it, and a run without bash refuses the call.
    return [`# commands() of the tool failed: ${describeError(error)}`]
  }
}

/** True for a tool that does nothing but run commands of the model, so that it needs `bash`. */
export function onlyRunsCommands({ commands, startsProcess }: Tool): boolean {
  return commands !== undefined && startsProcess === true
}
