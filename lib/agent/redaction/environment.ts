/**
 * Secrets among the variables of this process.
 *
 * @module
 */
import { isOrdinary } from '../../internal/errors.js'
import { isJsonObject, parseJson } from '../../internal/json.js'

/** Names of variables, or of fields of JSON, whose values are taken for secrets. */
const SECRET_NAME = new RegExp(
  '(?:^|_)(?:(?:API|ACCESS|SECRET|PRIVATE)_?KEYS?|KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|' +
    'PASSPHRASE|PASS|PWD|PAT|CREDENTIALS?|CREDS?|AUTH|BEARER|JWT|COOKIE|DSN|' +
    'CONN(?:ECTION)?(?:_?STR(?:ING)?)?|WEBHOOK(?:_URL)?)(?:_|\\d|$)|' +
    '(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)S?(?:_|\\d|$)',
  'i',
)
/** Names that hold a place or a setting, not a secret. */
const PLACE_NAME = new RegExp(
  '^(?:OLD)?PWD$|_(?:SOCK|FILE|PATH|DIR|DOMAIN|HOST|PORT|NAME|TYPE|METHOD|POLICY|PROVIDER|' +
    'ALGORITHM|TTL)$',
  'i',
)
/** Names whose values hold several secrets: `a=key,b=key`. */
const LIST_NAME = /(?:KEYS|TOKENS|SECRETS|PASSWORDS|CREDENTIALS)(?:_|\d|$)/i

/** Finds the secrets that a text shows by what stands before them (see `contexts.ts`). */
type FindInContext = (text: string) => readonly string[]

/** The secrets of one variable: texts that are masked, and its value as it stands. */
function secretsOf(name: string, value: string, find: FindInContext): readonly string[] {
  const inside = find(value)
  if (!SECRET_NAME.test(name) || PLACE_NAME.test(name)) return inside
  if (inside.length > 0 && URL.canParse(value)) return inside
  // An address with neither password nor key: a path of letters and digits may be one.
  if (/^https?:\/\//.test(value) && !/[\w-]{20,}/.test(value)) return inside
  const json = value.startsWith('{') ? parseJson(value) : undefined
  const fields = isJsonObject(json)
    ? Object.entries(json).flatMap(([key, part]) =>
        typeof part === 'string' && SECRET_NAME.test(key) && !key.endsWith('_id') ? [part] : [],
      )
    : []
  // A list of numbers is a number of something: `MAX_TOKENS`.
  if (LIST_NAME.test(name) && /^[\d\s,.]+$/.test(value)) return inside
  const list = LIST_NAME.test(name) ? value.split(/[\s,;]+/) : []
  // `alice=key`; base64 ends in `=`.
  const listed = list.map((entry) => /^[\w.-]+[=:](?!=*$)(.+)$/.exec(entry)?.[1] ?? entry)
  return [...inside, ...fields, ...listed, ...(listed.length > 1 ? [] : [value])]
}

/** The secrets in variables: those to mask everywhere, and those to mask behind their name only. */
export function secretsOfEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  find: FindInContext,
): {
  readonly values: readonly string[]
  readonly named: readonly (readonly [name: string, value: string])[]
} {
  const all = Object.entries(env).flatMap(([name, value = '']) =>
    secretsOf(name, value.trim(), find).map((secret) => [name, secret] as const),
  )
  const known = all.filter(([, value]) => value !== '')
  return {
    values: known.filter(([, value]) => !isOrdinary(value)).map(([, value]) => value),
    named: known.filter(([, value]) => isOrdinary(value)),
  }
}
