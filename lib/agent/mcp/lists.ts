import type { JsonObject, JsonValue } from '../../internal/json.js'
import { PageCheck } from '../../internal/page-check.js'
import { McpError } from '../errors.js'

/**
 * Reads a list of a server page by page: at most `most` items.
 *
 * @throws McpError for a list without an end.
 */
export async function readList(
  server: string,
  method: string,
  key: string,
  most: number,
  request: (method: string, params: JsonObject) => Promise<JsonObject>,
): Promise<readonly JsonValue[]> {
  const list: JsonValue[] = []
  const check = new PageCheck()
  for (let cursor: string | undefined; ; ) {
    const answer = await request(method, cursor === undefined ? {} : { cursor })
    const items: readonly JsonValue[] = Array.isArray(answer[key]) ? answer[key] : []
    list.push(...items.slice(0, most - list.length))
    const next = answer['nextCursor']
    // Some servers end a list with an empty cursor.
    if (typeof next !== 'string' || next === '' || list.length >= most) return list
    const problem = check.problem(next, items.length)
    if (problem !== null) throw new McpError(server, 'protocol', `its ${method} ${problem}`)
    cursor = next
  }
}
