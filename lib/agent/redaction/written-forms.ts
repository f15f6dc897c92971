/**
 * The forms in which programs write a secret: as it is, and in base64 as part of a longer text.
 *
 * @module
 */
import { SpelledText } from './spelled-text.js'

/** Characters of the shortest piece of base64 that stands for a secret. */
const SHORTEST_BASE64 = 8
/** A line of a key in several lines. */
const KEY_LINE = /^[A-Za-z0-9+/=_-]{32,}$/

/** The forms of a secret, whose characters may be spelled in several ways. */
export interface WrittenForms {
  readonly literals: readonly string[]
  readonly spelled: readonly SpelledText[]
}

/** All forms of a secret. */
export function writtenForms(secret: string): WrittenForms {
  const base64 = [...new Set(base64Forms(Buffer.from(secret).toString()))]
  const lines = secret.includes('\n') ? secret.split(/\r?\n/).filter((l) => KEY_LINE.test(l)) : []
  const spelled = base64.map((form) => new SpelledText(form, true))
  if (!SpelledText.isPlain(secret)) spelled.push(new SpelledText(secret))
  return { literals: [secret, ...base64, ...lines], spelled }
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
