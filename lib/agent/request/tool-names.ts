import { nearestName } from '../../internal/text.js'
import { InvalidRequestError } from '../errors.js'
import { clip } from '../output.js'
import type { SchemaViolation } from '../schema.js'
import type { Tool } from '../tool.js'
import { delegateTool } from '../tools/delegate.js'
import type { StartRequest } from './start-request.js'

/** Characters of a name, and of names, in a message. */
const NAME_CHARACTERS = 64
const NAMES_CHARACTERS = 600

/**
 * Checks the tools that a request names.
 *
 * @throws {@link InvalidRequestError} for one that the host does not offer, or that is named twice.
 */
export function checkToolNames(
  request: StartRequest,
  offered: ReadonlyMap<string, Tool>,
): void {
  const { approval, delegation, tools = [], workspace } = request
  const violations: SchemaViolation[] = []
  const exceptions = typeof approval === 'object' ? Object.keys(approval.tools) : []
  for (const name of exceptions) {
    const detail = unknownTool(name, offered)
    const pointer = `/approval/tools/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (detail !== null) violations.push({ pointer, detail })
  }
  for (const [i, name] of tools.entries()) {
    const detail =
      unknownTool(name, offered) ??
      (tools.indexOf(name) < i ? 'is named twice' : null) ??
      (workspace === 'none' && offered.get(name)!.needsFolder === true
        ? 'works in a folder, and this run has none'
        : null) ??
      (delegation === undefined && offered.get(name) === delegateTool
        ? 'needs `delegation`, which says how far the run may start others'
        : null)
    if (detail !== null) violations.push({ pointer: `/tools/${i}`, detail })
  }
  if (violations.length > 0) throw new InvalidRequestError(violations)
}

function unknownTool(name: string, offered: ReadonlyMap<string, Tool>): string | null {
  if (offered.has(name)) return null
  const known = [...offered.keys()]
  const nearest = nearestName(name, known)
  const all = `there are ${clip(known.join(', '), NAMES_CHARACTERS)}`
  const hint = nearest === undefined ? all : `did you mean ${nearest}?`
  return `there is no tool ${JSON.stringify(clip(name, NAME_CHARACTERS))} here; ${hint}`
}
