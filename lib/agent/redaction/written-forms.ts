/**
 * The forms in which programs write a secret: as it is, escaped in JSON, encoded in a URL, and in
 * base64 as part of a longer text.
 *
 * @module
 */

/** Characters of the shortest piece of base64 that stands for a secret. */
const SHORTEST_BASE64 = 8
/** A line of a key in several lines. */
const KEY_LINE = /^[A-Za-z0-9+/=_-]{32,}$/

/** All forms of a secret, without duplicates. */
export function writtenForms(secret: string): readonly string[] {
  const wellFormed = Buffer.from(secret).toString()
  const json = JSON.stringify(secret).slice(1, -1)
  const lines = secret.includes('\n') ? secret.split(/\r?\n/).filter((l) => KEY_LINE.test(l)) : []
  return [
    ...new Set([
      secret,
      json,
      json.replaceAll('/', '\\/'),
      json.replaceAll(/[^\x00-\x7f]/g, unicodeEscape),
      ...urlForms(wellFormed),
      ...base64Forms(wellFormed),
      ...lines,
    ]),
  ]
}

function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** As a part of a path and of a query, by the rules of browsers and of RFC 3986. */
function urlForms(secret: string): string[] {
  const component = encodeURIComponent(secret)
  const strict = component.replaceAll(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  const form = new URLSearchParams({ s: secret }).toString().slice(2)
  const path = strict.replaceAll('%2F', '/')
  const upper = [component, strict, form, path, strict.replaceAll('~', '%7E')]
  const lower = (text: string): string => text.replaceAll(/%[0-9A-F]{2}/g, (c) => c.toLowerCase())
  return [...upper, ...upper.map(lower)]
}

/**
 * Base64 of a text that contains the secret: three forms, by the number of bytes before it, without
 * the characters that hold bits of other bytes too; each in both alphabets.
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const forms = [0, 1, 2].map((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
    const end = Math.floor((whole.length * 8) / 6)
    return whole.toString('base64').slice(Math.ceil((before * 8) / 6), end)
  })
  const urlSafe = forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [...forms, ...urlSafe].filter(({ length }) => length >= SHORTEST_BASE64)
}
