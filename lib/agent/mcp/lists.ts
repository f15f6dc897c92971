import type { JsonObject, JsonValue } from '../../internal/json.js'

/** Pages read of one list. */
const MAX_PAGES = 64

/** Reads a list page by page: at most `most` items. */
export async function readList(
  method: string,
  key: string,
  most: number,
  request: (method: string, params: JsonObject) => Promise<JsonObject>,
): Promise<readonly JsonValue[]> {
  const list: JsonValue[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES && list.length < most; page++) {
    const answer = await request(method, cursor === undefined ? {} : { cursor })
    const items = answer[key]
    if (Array.isArray(items)) list.push(...items.slice(0, most - list.length))
    const next = answer['nextCursor']
    if (typeof next !== 'string' || next === cursor) break
    cursor = next
  }
  return list
}
