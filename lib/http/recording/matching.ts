import type { HarEntry, HarRequest } from './har.js'
import { splitAt, type Masker } from './masking.js'

/** Characters of a body or value in a message. */
const SHOWN = 40

const NO_BODY: Partial<NonNullable<HarRequest['postData']>> = {}

/** What is compared of a request, secrets masked. */
interface Compared {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly body: string
}

/** Method, URL and body of a recorded request, which may come from another program. */
export function comparedOf(request: HarRequest, masker: Masker): Compared {
  const { text = '', mimeType = '', params = [], _encoding } = request.postData ?? NO_BODY
  // HAR allows either.
  const form = new URLSearchParams()
  for (const { name, value } of params) form.append(name, value)
  const plain = text === '' ? form.toString() : text
  const body = _encoding === 'base64' ? plain : masker.all(masker.body(plain, mimeType))
  const [path, query] = splitAt(masker.url(request.url), '?')
  return { method: request.method.toUpperCase(), path, query: query ?? '', body }
}

/** Equal for requests that get the same response. */
export function keyOf({ method, path, query, body }: Compared): string {
  return `${method} ${path}?${query}\n${body}`
}

/** The recorded request most like `wanted`, and in which part it differs; null without any. */
export function nearest(
  wanted: Compared,
  entries: readonly HarEntry[],
  masker: Masker,
): string | null {
  let best: { readonly score: number; readonly found: Compared } | null = null
  for (const { request } of entries) {
    const found = comparedOf(request, masker)
    const score = likeness(wanted, found)
    if (best === null || score > best.score) best = { score, found }
  }
  if (best === null) return null
  const { method, path, query } = best.found
  const url = query === '' ? path : `${path}?${shortened(query, 4 * SHOWN)}`
  return `${method} ${url}, where ${differences(wanted, best.found).join(' and ')}`
}

function likeness(a: Compared, b: Compared): number {
  const common = commonLength(a.path, b.path) / Math.max(a.path.length, b.path.length)
  return (
    (a.path === b.path ? 8 : 4 * common) +
    (a.method === b.method ? 4 : 0) +
    (a.query === b.query ? 2 : 0) +
    (a.body === b.body ? 1 : 0)
  )
}

function differences(wanted: Compared, found: Compared): string[] {
  const parts: string[] = []
  if (wanted.method !== found.method) parts.push('the method differs')
  if (wanted.path !== found.path) parts.push('the URL differs')
  if (wanted.query !== found.query) parts.push(queryDifference(wanted.query, found.query))
  if (wanted.body !== found.body) parts.push(bodyDifference(wanted.body, found.body))
  return parts
}

function queryDifference(wanted: string, found: string): string {
  const [now, then] = [new URLSearchParams(wanted), new URLSearchParams(found)]
  for (const key of new Set([...then.keys(), ...now.keys()])) {
    const [a, b] = [now.getAll(key).join(), then.getAll(key).join()]
    if (a === b && now.has(key) === then.has(key)) continue
    const recorded = then.has(key) ? JSON.stringify(shortened(b)) : 'missing'
    const sent = now.has(key) ? JSON.stringify(shortened(a)) : 'missing'
    return `${key} of the query is ${recorded}, now ${sent}`
  }
  return 'the query has another order'
}

function bodyDifference(wanted: string, found: string): string {
  if (found === '') return 'there is no body'
  if (wanted === '') return 'there is a body, now there is none'
  const at = commonLength(wanted, found)
  const from = Math.max(0, at - 15)
  const [then, now] = [found, wanted].map((body) => JSON.stringify(shortened(body.slice(from))))
  return `the body at character ${at} is ${then}, now ${now}`
}

function commonLength(a: string, b: string): number {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}

function shortened(text: string, length = SHOWN): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`
}
