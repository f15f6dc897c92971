/**
 * Secrets that only what stands before them shows: the password in a URL, an `Authorization`
 * header, a connection string, or an ordinary word behind the name of its variable. Only the secret
 * itself is masked.
 *
 * Each pattern has a part before the secret and the secret. Repetitions are bounded or consist of
 * parts with a separator, so that the search is linear.
 *
 * @module
 */
import type { Pattern } from './scanner.js'
import { Scanner } from './scanner.js'

/** A reference to a secret or a placeholder, and not a secret: `${TOKEN}`, `<password>`, `***`. */
const NO_REFERENCE = '(?![$*{<]|%[sdv]|\\[secret removed\\])'
const QUOTE = '\\\\{0,2}["\'`]?'
/** Fields of connection strings, which name a place or a user: ODBC, .NET and libpq. */
const FIELDS = [
  'server', 'host', 'data source', 'addr', 'network address', 'database', 'initial catalog', 'user',
  'uid', 'port', 'endpoint', 'driver', 'dbname', 'sslmode',
]
const FIELD = '(?:server|hostaddr|host|data source|address|addr|network address|database|' +
  'initial catalog|user id|username|user|uid|port|endpointsuffix|endpoint|driver|dbname|sslmode)'

const CONTEXTS: readonly (readonly [
  anchors: readonly string[],
  before: string,
  secret: string,
])[] = [
  // RFC 3986, section 3.2.1. A password may contain `@`, the last one ends it.
  [['://'], `://[^\\s/?#@:"'<>\\\\]{0,128}:`, `${NO_REFERENCE}[^\\s/?#"'<>\\\\]{1,256}(?=@)`],
  [
    ['authorization'],
    `\\bauthorization${QUOTE}\\s{0,4}[:=,]\\s{0,4}${QUOTE}` +
      '(?:basic|bearer|token|digest|negotiate|apikey)\\s{1,4}',
    `${NO_REFERENCE}[\\w.~+/=-]{6,}`,
  ],
  [['bearer'], '\\bbearer\\s{1,4}', '(?=[a-z._~+/-]{0,64}\\d)[\\w.~+/-]{20,}=*'],
  [['x-api-key'], `\\bx-api-key${QUOTE}\\s{0,2}[:=,]\\s{0,2}${QUOTE}`, '[\\w.~+/=-]{16,}'],
  [
    ['cookie'],
    `\\bcookie${QUOTE}\\s{0,2}[:=,]\\s{0,2}${QUOTE}[\\w!#$%&*+.^|~-]{1,64}=`,
    `${NO_REFERENCE}[^\\s"'\`\\\\,;][^\\r\\n"'\`\\\\]{0,4095}`,
  ],
  [
    ['_authToken', '_password'],
    '(?<=^[ +-]?|:)_(?:authToken|auth|password)=["\']?',
    `${NO_REFERENCE}[^\\s"']{1,1024}`,
  ],
  [
    ['machine'],
    '\\bmachine\\s{1,8}[^\\s"\']{1,256}\\s{1,8}' +
      '(?:(?:login|account)\\s{1,8}\\S{1,256}\\s{1,8}){0,2}password\\s{1,8}',
    `${NO_REFERENCE}\\S{1,256}`,
  ],
  [
    ['AccountKey', 'SharedAccessKey'],
    '\\b(?:AccountKey|SharedAccessKey|SharedSecretValue)=',
    '[\\w+/%-]{16,}={0,2}',
  ],
  [['sig='], '(?<=[?&;])sig=', '[\\w%+/-]{20,}'],
  [
    FIELDS,
    `\\b${FIELD}\\s?=[^;="'\\n]{1,256};(?:[^;="'\\n]{1,64}=[^;="'\\n]{0,256};){0,8}\\s?` +
      '(?:password|pwd)\\s?=\\s?',
    `${NO_REFERENCE}[^;"'\\s]{1,256}`,
  ],
  [
    FIELDS,
    `\\b${FIELD}=[^\\s"';=]{1,128}[ \\t](?:[a-z_]{1,32}=[^\\s"';=]{0,128}[ \\t]){0,8}password=`,
    `${NO_REFERENCE}[^\\s"';]{1,256}`,
  ],
  [
    ['password', 'pwd'],
    '\\b(?:password|pwd)\\s?=\\s?',
    `${NO_REFERENCE}[^;"'\\s]{1,256}(?=;\\s?${FIELD}\\s?=)`,
  ],
  [
    ['client_secret', 'refresh_token', 'access_token', 'aws_'],
    `\\b(?:client_secret|refresh_token|access_token|aws_secret_access_key|aws_session_token)` +
      `${QUOTE}\\s{0,4}[:=]\\s{0,4}${QUOTE}`,
    '(?=[a-z./+_-]{0,64}\\d)[\\w.~+/-]{16,}={0,2}',
  ],
  [['hooks.'], '\\bhooks\\.slack\\.com/(?:services|workflows|triggers)/', '[\\w/-]{16,}'],
  [
    ['discord'],
    '\\bdiscord(?:app)?\\.com/api/(?:v\\d{1,2}/)?webhooks/\\d{5,25}/',
    '[\\w-]{20,}',
  ],
  [['webhook.'], '\\bwebhook\\.office\\.com/webhookb2/', '[\\w@/-]{20,}'],
  [['api.'], '\\bapi\\.telegram\\.org/bot', '\\d{5,12}:[\\w-]{20,}'],
]

const COMMON: readonly Pattern[] = CONTEXTS.map(([anchors, before, secret]) =>
  context(anchors, before, secret),
)

/** Characters that are looked at before the end of a text that may cut a context. */
const MAX_OPEN = 2_048
/**
 * The beginnings of contexts that the end of a line may cut: what is before the secret, and as much
 * of the secret as decides whether it is one.
 */
const OPEN_CONTEXT = new RegExp(
  [
    '://[^\\s/?#"\'<>\\\\]{0,400}',
    '\\b(?:authorization|bearer|x-api-key|cookie)[^\\n]{0,160}',
    '_(?:authToken|auth|password)["\'=]{0,2}',
    '\\b(?:AccountKey|SharedAccessKey|SharedSecretValue|sig)=[^\\n]{0,40}',
    `\\b${FIELD}\\s?=[^"'\\n]{0,1024}`,
    '\\b(?:password|pwd)\\s?(?:=\\s?[^\\s;"\']{0,256}(?:;[a-z =]{0,24})?)?',
    '\\b(?:client_secret|refresh_token|access_token|aws_)[^\\n]{0,80}',
    '\\b(?:hooks\\.|discord|webhook\\.|api\\.)[^\\s]{0,120}',
  ].map((open) => `(?:${open})$`).join('|'),
  'i',
)
/** Of the contexts only an entry of a netrc file has several lines. */
const OPEN_ENTRY = /\bmachine(?:\s{1,8}\S{1,256}){0,6}\s{0,8}$/i
/** A flag with a value, or the name of a variable. */
const OPEN_FLAG = /--(?:[psat][a-z-]{0,12}[= ]?["']?[^\s]{0,256})?$/i
const OPEN_NAMED = 256

/**
 * Patterns of secrets that are known by what stands before them.
 *
 * @param named - names of variables with ordinary values, which are masked behind the name only.
 */
export function contextPatterns(
  named: readonly (readonly [name: string, value: string])[],
): readonly Pattern[] {
  const values = [...new Set(named.map(([, value]) => escapePattern(value)))]
  const flags =
    values.length === 0
      ? []
      : [
          context(
            ['--p', '--t', '--s', '--a'],
            '--(?:password|passwd|pass|pwd|token|secret|api-?key|auth)[= ]["\']?',
            `(?:${values.join('|')})(?![\\w/])`,
          ),
        ]
  return [...COMMON, ...named.map(([name, value]) => namedContext(name, value)), ...flags]
}

/** `NAME=value`, `"name": "value"`, `name: value`: the name in any case, the value in its own. */
function namedContext(name: string, value: string): Pattern {
  const anyCase = escapePattern(name).replaceAll(/[a-z]/gi, (letter) => {
    return `[${letter.toLowerCase()}${letter.toUpperCase()}]`
  })
  const before = `\\b${anyCase}${QUOTE}\\]?[ \\t]{0,3}(?:=>?|:=?)[ \\t]{0,3}${QUOTE}`
  return context([name], before, `${escapePattern(value)}(?![\\w/])`, 'ym')
}

function context(
  anchors: readonly string[],
  before: string,
  secret: string,
  flags = 'iym',
): Pattern {
  return { anchors, regex: new RegExp(`(${before})${secret}`, flags), isContext: true }
}

/** Where a context begins whose secret the end of a text may cut; else the text's length. */
export function openContextAt(text: string, names: readonly string[]): number {
  const tail = text.slice(-MAX_OPEN)
  const line = tail.slice(tail.lastIndexOf('\n') + 1)
  const found = [OPEN_CONTEXT.exec(line)?.index ?? line.length]
  if (names.length > 0) {
    found.push(OPEN_FLAG.exec(line)?.index ?? line.length)
    const near = line.slice(-OPEN_NAMED).toLowerCase()
    for (const name of names) {
      const at = near.indexOf(name.toLowerCase())
      if (at !== -1) found.push(line.length - near.length + at)
    }
  }
  const open = text.length - line.length + Math.min(...found)
  const entry = tail.includes('machine') ? OPEN_ENTRY.exec(tail) : null
  return entry === null ? open : Math.min(open, text.length - tail.length + entry.index)
}

const common = new Scanner([], COMMON)

/** The secrets that a text shows by what stands before them. */
export function valuesInContext(text: string): readonly string[] {
  return common.find(text).map(({ start, end }) => text.slice(start, end))
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
