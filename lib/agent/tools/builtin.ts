import type { Tool } from '../tool.js'
import { bashTool } from './bash.js'
import { editFileTool } from './edit-file.js'
import { listFilesTool } from './list-files.js'
import { readFileTool } from './read-file.js'
import { searchFilesTool } from './search-files.js'
import { writeFileTool } from './write-file.js'

/** The tools that every run has: a shell, and the files of the workspace. */
export function builtinTools(): readonly Tool[] {
  return [bashTool, readFileTool, writeFileTool, editFileTool, listFilesTool, searchFilesTool]
}
