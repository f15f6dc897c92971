import assert from 'node:assert/strict'
import { Random } from './random.js'

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

/**
 * A run of a secret that nothing may show: 8 random characters are 48 bits of it, too many for an
 * accident and enough to find it with the help of a leak elsewhere; of a short one, half of it.
 */
export function telltale(secret: string): number {
  return Math.min(8, Math.ceil(secret.length / 2))
}

/** Asserts that a text holds no run of a secret, in any of the given written forms. */
export function assertNoPart(text: string, secret: Secret, what: string): void {
  for (const form of secret.forms) {
    const length = form === secret.text ? telltale(form) : Math.ceil((telltale(form) * 4) / 3)
    for (let at = 0; at + length <= form.length; at++) {
      const run = form.slice(at, at + length)
      const found = text.indexOf(run)
      if (found === -1) continue
      const around = text.slice(Math.max(0, found - 40), found + 60)
      assert.fail(`${what} shows ${JSON.stringify(run)} of ${secret.kind}: …${around}…`)
    }
  }
}

export interface Secret {
  readonly kind: string
  /** The part of it that must not be shown. */
  readonly text: string
  /** It and what it is written as. */
  readonly forms: readonly string[]
  /** A form of it, with what must stand before and after it to be known as a secret. */
  write(random: Random): string
}

export function letters(random: Random, length: number): string {
  return Array.from({ length }, () => random.pick([...LETTERS])).join('')
}

/** A text that somebody gave to runwright, in the forms in which programs write it. */
export function givenSecret(random: Random, isPlain = false): Secret {
  const ending = isPlain ? 'abc1' : random.pick(['+/"~', '\\/é&', '-_.!', 'abc1'])
  const text = letters(random, random.integer(12, 56)) + ending
  const forms = new Map<string, string>([
    ['as it is', text],
    ['in JSON', JSON.stringify(text).slice(1, -1)],
    ['in a URL', encodeURIComponent(text)],
  ])
  for (const before of ['', 'x', 'xy']) {
    const whole = Buffer.from(`${before}${text}`)
    // Without the characters that share bits with what is before and after it.
    const clean = (form: string): string => form.slice(4, Math.floor(whole.length / 3) * 4)
    forms.set(`base64 after ${before.length}`, clean(whole.toString('base64')))
    forms.set(`base64url after ${before.length}`, clean(whole.toString('base64url')))
  }
  return {
    kind: 'a given secret',
    text,
    forms: [...forms.values()],
    write: (r) => {
      const how = r.integer(0, 4)
      if (how === 0) return encodeURIComponent(text)
      if (how === 1) return JSON.stringify(text).slice(1, -1)
      if (how > 2) return text
      const whole = Buffer.from(`${'xyz'.slice(0, r.integer(0, 2))}${text}`)
      return whole.toString(r.pick(['base64', 'base64url'] as const))
    },
  }
}

/** Secrets that nobody gave, known by their shape or by what stands before them. */
export function shapedSecret(random: Random): Secret {
  const body = letters(random, 40)
  const lines = Array.from({ length: 12 }, () => letters(random, 64)).join('\n')
  const [kind, before, text, after] = random.pick([
    ['a key', 'sk-proj-', body, ''],
    ['a key of GitHub', 'ghp_', body, ''],
    ['a password in a URL', 'https://someone:', body, '@host.test/x'],
    ['a header', 'Authorization: Bearer ', body, ''],
    ['a private key', '-----BEGIN PRIVATE KEY-----\n', lines, '\n-----END PRIVATE KEY-----'],
  ] as const)
  return { kind, text, forms: [text], write: () => `${before}${text}${after}` }
}

/** `length` bytes of harmless text. */
export function filler(random: Random, length: number): string {
  let text = ''
  while (text.length < length) text += random.pick(['lorem ', 'ipsum ', 'dolor\n', 'sit-', '. '])
  return text.slice(0, length)
}
