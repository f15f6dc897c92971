/** A secret is found however programs escape its characters. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { StreamRedactor } from '../../../lib/agent/redaction/stream-redactor.js'
import { Random } from '../../helpers/random.js'
import { letters } from '../../helpers/secrets.js'

const SPECIAL = [
  ...'%+="\'\\/\n\té漢😀$*()[{|^?<>& #~!;:,`@-_',
  '%2F', '\\n', '\\\n', '\u2028',
]

const json = (text: string): string => JSON.stringify(text).slice(1, -1)
const escape = (text: string, chars: RegExp, isUpper = false): string =>
  text.replaceAll(chars, (unit) => {
    const hex = unit.charCodeAt(0).toString(16).padStart(4, '0')
    return `\\u${isUpper ? hex.toUpperCase() : hex}`
  })

const SPELLINGS: Readonly<Record<string, (secret: string, random: Random) => string>> = {
  'JSON of Go': (secret) => escape(json(secret), /[<>&\u2028]/g),
  'JSON of Gson': (secret) => escape(json(secret), /[<>&='\u2028]/g),
  'JSON of PHP': (secret) => escape(json(secret).replaceAll('/', '\\/'), /[^\x00-\x7f]/g),
  'JSON of .NET': (secret) => escape(json(secret), /[<>&'+`]|[^\x00-\x7f]/g, true),
  'JSON in JSON': (secret) => json(json(secret)),
  'JSON in JSON in JSON': (secret) => json(json(json(secret))),
  encodeURI,
  'a URL with digits of both cases': (secret, random) =>
    encodeURIComponent(secret).replaceAll(/%../g, (one) =>
      random.chance(0.5) ? one.toLowerCase() : one,
    ),
  'a URL in a URL': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'the user information of a URL': (secret) => {
    const url = new URL('http://a/')
    url.password = secret
    return url.password
  },
  'base64 in a URL': (secret) => encodeURIComponent(Buffer.from(secret).toString('base64')),
  'base64 in lines': (secret, random) =>
    Buffer.from('a'.repeat(random.integer(0, 70)) + secret)
      .toString('base64')
      .replaceAll(/.{76}/g, '$&\n'),
}

for (const [name, spell] of Object.entries(SPELLINGS)) {
  test(`a secret is found in ${name}`, () => {
    const random = new Random(name.length * 31)
    for (let round = 0; round < 5; round++) {
      const parts = Array.from({ length: 12 }, () => letters(random, 2) + random.pick(SPECIAL))
      const secret = `${letters(random, 1)}${random.chance(0.5) ? '' : '"+'}${parts.join('')}end`
      const redactor = new Redactor([secret])
      const text = `before ${spell(secret, random)} after`
      const shown = redactor.text(text)
      // Base64 keeps characters that share bits with those before and after the secret.
      const kept = name.startsWith('base64') ? 102 : 0
      assert.match(shown, /^before .*\[secret removed\].* after$/s, text)
      assert.ok(shown.length <= 'before [secret removed] after'.length + kept, shown)
      const stream = new StreamRedactor(redactor)
      const pieces = Array.from(text, (piece) => stream.push(piece))
      assert.equal(pieces.join('') + stream.end(), shown)
    }
  })
}
