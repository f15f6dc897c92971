/** What is taken for a secret, and what is not: tables. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addNamedCredential, REDACTED } from '../../../lib/internal/errors.js'
import { valuesInContext } from '../../../lib/agent/redaction/contexts.js'
import { secretsOfEnvironment } from '../../../lib/agent/redaction/environment.js'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { findPrivateKeys } from '../../../lib/agent/redaction/shapes.js'
import { StreamRedactor } from '../../../lib/agent/redaction/stream-redactor.js'

const B64 = 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ'
const HEX = '9f86d081884c7d659a2feaa0c55ad015'

/** Variables whose value, or a part of it, is masked everywhere. */
const EVERYWHERE: readonly (readonly [name: string, value: string, ...masked: string[]])[] = [
  ['API_KEY', `/${B64}`],
  ['DB_PASSWORD', 'correcthorsebattery'],
  ['SESSION_SECRET', '1234567890123456789'],
  ['PGPASSWORD', 'x9-horse-x9'],
  ['MYSQL_PWD', 'x9-horse-x9'],
  ['GITHUB_PAT', B64],
  ['AWS_SECRET_ACCESS_KEY', `${B64}/abcdefg`],
  ['SSH_PASSPHRASE', 'open sesame 99'],
  ['REDISCLI_AUTH', B64],
  ['NPM_TOKEN', B64],
  ['GITHUBTOKEN', B64],
  ['DBPASSWORD', 'x9-horse-x9'],
  ['MY_API_KEY_2', B64],
  ['STRIPE_KEYS', `${B64} ${HEX}`, B64, HEX],
  ['RUNWRIGHT_API_KEYS', `alice=${B64},bob=${HEX}`, B64, HEX],
  ['RUNWRIGHT_API_KEYS', B64],
  ['DATABASE_URL', 'postgres://app:Xk29vLq8Zz@db.test:5432/app', 'Xk29vLq8Zz'],
  ['ANY_NAME', 'redis://:Xk29vLq8Zz@cache.test', 'Xk29vLq8Zz'],
  ['SENTRY_DSN', `https://${HEX}@o1.ingest.test/2`],
  ['SQL_CONN', 'Server=db;User Id=sa;Password=Xk29vLq8Zz;Encrypt=true', 'Xk29vLq8Zz'],
  ['AZURE', `AccountName=a;AccountKey=${B64}==;EndpointSuffix=x`, `${B64}==`],
  ['GCP_CREDENTIALS', JSON.stringify({ type: 'service_account', private_key: B64 }), B64],
  ['SLACK_WEBHOOK_URL', `https://hooks.slack.com/services/T0/B0/${B64}`],
]

test('values of variables with telling names are masked everywhere', () => {
  for (const [name, value, ...parts] of EVERYWHERE) {
    const { values } = secretsOfEnvironment({ [name]: value }, valuesInContext)
    const redactor = new Redactor(values)
    for (const part of parts.length === 0 ? [value] : parts) {
      assert.ok(!redactor.text(`It is ${part}.`).includes(part), `${name}: ${values.join(' ')}`)
    }
  }
})

/** Variables whose value is masked behind their name only. */
const WEAK: readonly (readonly [name: string, value: string])[] = [
  ['PGPASSWORD', 'test'],
  ['PASSWORD', 'admin'],
  ['DB_PASSWORD', 'postgres'],
  ['TOKEN', '12345678'],
  ['API_KEY', '/usr/bin'],
  ['SECRET', 'password'],
  ['MYSQL_PWD', 'root'],
  ['ACCESS_TOKEN', 'development'],
  ['CI_TOKEN', 'localhost'],
  ['APP_SECRET', 'src/index'],
  ['AUTH_TOKEN', 'build'],
  ['REDIS_PASSWORD', '0'],
  ['APP_KEY', '20260101'],
  ['SIGNING_KEY', './test/fixtures/key'],
]

test('words, numbers and paths are masked behind their own name only', () => {
  assert.deepEqual(secretsOfEnvironment(Object.fromEntries(WEAK), valuesInContext).values, [])
  for (const [name, value] of WEAK) addNamedCredential(name, value)
  const redactor = new Redactor()
  for (const [name, value] of WEAK) {
    for (const [before, after] of [
      [`${name}=`, ''],
      [`export ${name}="`, '"'],
      [`"${name}": "`, '",'],
      [`{\\"${name}\\":\\"`, '\\"}'],
      [`  ${name.toLowerCase()}: `, '\n'],
      [`process.env['${name}'] = '`, "'"],
      ['psql --password ', ' -h x'],
      ['tool --token=', ''],
    ] as const) {
      const text = `${before}${value}${after}`
      assert.equal(redactor.text(text), `${before}${REDACTED}${after}`)
      const stream = new StreamRedactor(redactor)
      const shown = [...text].map((piece) => stream.push(piece)).join('') + stream.end()
      assert.equal(shown, redactor.text(text))
    }
    assert.equal(redactor.text(`a ${value} b ${name} c ${value}`), `a ${value} b ${name} c ${value}`)
    assert.equal(redactor.findsIn({ path: 'a', content: `${name}=${value}` }), false)
  }
})

test('a word in another case is not the value of a name', () => {
  addNamedCredential('SECRET', 'secret')
  const redactor = new Redactor()
  for (const text of ['const secret: Secret = ask()', 'return { url, secret: SECRET }']) {
    assert.equal(redactor.text(text), text)
  }
  assert.equal(redactor.text('Secret: secret'), `Secret: ${REDACTED}`)
})

test('names that hold no secret are left alone', () => {
  const env = {
    PWD: '/srv/Some1Where2',
    OLDPWD: '/srv/Some1Where2',
    MAX_TOKENS: '100000',
    SSH_AUTH_SOCK: '/tmp/agent.1',
    KEYBOARD: 'us-intl-1234',
    AUTHOR: 'A. U. Thor 123',
    SECRET_FILE: 'Some1File2Name3',
    TOKEN_PATH: 'Some1File2Name3',
    MONKEY: 'Some1File2Name3',
    COMPASS: 'Some1File2Name3',
    API_URL: 'https://api.test/v1',
    EMPTY_TOKEN: '',
  }
  const found = secretsOfEnvironment(env, valuesInContext)
  assert.deepEqual(found, { values: [], named: [] })
})

/** Before the secret, the secret, after it. */
const CONTEXTS: readonly (readonly [string, string, string])[] = [
  ['git clone https://me:', 'p4ss', '@git.test/a.git'],
  ['origin\thttps://x-token:', 'a@b:c', '@git.test/a.git (fetch)'],
  ['redis://:', 'pw', '@cache:6379/0'],
  ['"postgres://u:', 'p%40ss', '@[::1]:5432/db"'],
  ['> Authorization: Bearer ', 'abc.def-ghi', '\r\n'],
  ["'authorization': 'Basic ", 'dXNlcjpwYXNz', "'"],
  ['{"Authorization":"token ', 'abcdef99', '"}'],
  ['Proxy-Authorization: basic ', 'dXNlcjpwYXNz', ''],
  ['got bearer ', 'abcdefghijklmnopqrst9', ' back'],
  ['x-api-key: ', '0123456789abcdef', ''],
  ['Cookie: sid=', 'abc123; theme=dark', '\nHost: a'],
  ['set-cookie: sid=', 's%3Aabc; Path=/; HttpOnly', '\r\n'],
  ['//registry.test/:_authToken=', 'abc-def', '\n'],
  ['_auth=', 'dXNlcjpwYXNz', ''],
  ['.npmrc:1:_password=', 'cGFzcw==', ''],
  ['machine api.test\n  login me\n  password ', 'p4ss', '\n'],
  ['machine api.test login me password ', 'p4ss', ' macdef'],
  ['AccountName=a;AccountKey=', `${B64}==`, ';EndpointSuffix=x'],
  ['https://a.blob.test/c?sv=1&sig=', 'abcdefghijklmnop%2Fqrst%3D', '&se=2'],
  ['Server=db;User Id=sa;Password=', 'p4ss!', ';Encrypt=true'],
  ['Password=', 'p4ss!', ';Server=db'],
  ['Data Source=x;pwd=', 'p4ss!', '"'],
  ['host=db user=app password=', 'p4ss', ' dbname=x'],
  ['"refresh_token": "', '1//0abcdefghijklm', '"'],
  ['aws_secret_access_key = ', `${B64}/AbCdEf9`, '\n'],
  ['https://hooks.slack.com/services/', 'T00000000/B00000000/XXXXXXXXXX', ' x'],
  ['https://discord.com/api/webhooks/123456789/', 'abcdefghijklmnopqrstuvwxyz', ''],
  ['https://api.telegram.org/bot', '123456789:abcdefghijklmnopqrstuvwx', '/send'],
]

test('what stands in the place of a password is masked, and nothing around it', () => {
  const redactor = new Redactor()
  for (const [before, secret, after] of CONTEXTS) {
    const text = `${before}${secret}${after}`
    const masked = `${before}${REDACTED}${after}`
    assert.equal(redactor.text(text), masked)
    assert.equal(redactor.text(masked), masked)
    for (let at = 0; at <= text.length; at++) {
      const stream = new StreamRedactor(redactor)
      const shown = [stream.push(text.slice(0, at)), stream.push(text.slice(at)), stream.end()]
      assert.equal(shown.join(''), masked)
    }
  }
})

const KEY = `${B64}${B64}\n${B64}${B64}\n`

test('private keys in every variant are masked; certificates and constants are not', () => {
  const redactor = new Redactor()
  for (const kind of ['', 'RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED ']) {
    const pem = `-----BEGIN ${kind}PRIVATE KEY-----\n${KEY}-----END ${kind}PRIVATE KEY-----`
    assert.equal(redactor.text(`a\n${pem}\nb`), `a\n${REDACTED}\nb`)
    assert.equal(redactor.text(JSON.stringify({ k: pem })), `{"k":"${REDACTED}"}`)
    assert.equal(redactor.lines(pem).split('\n').length, pem.split('\n').length)
    // The end of a key without its header, as `tail` shows it.
    assert.equal(redactor.text(`${pem.slice(60)}\nb`), `${REDACTED}\nb`)
  }
  const pgp = `-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n${KEY}-----END PGP PRIVATE KEY BLOCK-----`
  assert.equal(redactor.text(pgp), REDACTED)
  for (const text of [
    `-----BEGIN CERTIFICATE-----\n${KEY}-----END CERTIFICATE-----`,
    `-----BEGIN PUBLIC KEY-----\n${KEY}-----END PUBLIC KEY-----`,
    "const HEADER = '-----BEGIN PRIVATE KEY-----'\nconst rest = 1\n",
  ]) {
    assert.equal(redactor.text(text), text)
  }
})

test('a secret is masked in base64 at every alignment, in URLs and in JSON', () => {
  const secret = 'p/ass+"wörd"\\~9(x)'
  const redactor = new Redactor([secret])
  for (const before of ['', 'a', 'ab', 'abc']) {
    for (const after of ['', 'y', 'yz']) {
      for (const encoding of ['base64', 'base64url'] as const) {
        const text = Buffer.from(`${before}${secret}${after}`).toString(encoding)
        const shown = redactor.text(text)
        assert.ok(shown.includes(REDACTED), `${before} ${after} ${encoding}`)
        // Some bits of the neighbours share a character with it.
        assert.ok(shown.replace(REDACTED, '').replaceAll('=', '').length <= 12)
      }
    }
  }
  const url = encodeURIComponent(secret)
  const lower = url.replaceAll(/%../g, (hex) => hex.toLowerCase())
  const query = new URLSearchParams({ q: secret }).toString()
  const ascii = JSON.stringify(secret).replace('ö', '\\u00f6')
  for (const text of [secret, url, lower, query, JSON.stringify(secret), ascii]) {
    assert.ok(redactor.text(text).includes(REDACTED), text)
  }
})

test('the search is linear for texts that begin many secrets', () => {
  const redactor = new Redactor(['hunter2-horse'])
  for (const piece of [
    '-----BEGIN PRIVATE KEY-----"',
    '-----END PRIVATE KEY-----\n',
    `${B64}${B64}\n`,
    'sk-',
    'xoxb-',
    '-eyJ',
    'eyJaaaaaaaaaaaa.',
    'hunter2-hors',
    '://a:',
    'user=a;',
    'host=a user=',
    'machine a ',
    'Cookie: a',
    'bearer ',
  ]) {
    const time = (units: number): number => {
      const text = piece.repeat(units / piece.length)
      const began = process.cpuUsage()
      redactor.text(text)
      findPrivateKeys(text)
      return process.cpuUsage(began).user
    }
    time(20_000)
    const [once, many] = [time(20_000), time(160_000)]
    // 8 times the text; quadratic would be 64 times.
    assert.ok(many < 30 * Math.max(once, 3_000), `${piece}: ${once} and ${many} us`)
  }
})
