/**
 * Every place of the public API that takes options refuses a name that is none and says which was
 * meant. The places are found in the types, so a new function fails here until it is listed in
 * `helpers/option-calls.ts`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notOptions, optionCalls } from './helpers/option-calls.js'
import { optionPlaces, type OptionPlace } from './helpers/option-places.js'

/** A copy of `base` in which the object at `path` also has `more`. */
function extended(base: any, path: readonly string[], more: object): unknown {
  const [step, ...rest] = path
  if (step === undefined) return { ...base, ...more }
  const copy: any = Array.isArray(base) || /^\d+$/.test(step) ? [...(base ?? [])] : { ...base }
  copy[step] = extended(copy[step], rest, more)
  return copy
}

async function errorOf({ parameter, path, names }: OptionPlace, more: object): Promise<Error> {
  const { call, base } = optionCalls.get(parameter)!
  const steps = path.match(/\w+/g) ?? []
  try {
    await call(extended(base?.(names) ?? {}, steps, more))
  } catch (error) {
    return error as Error
  }
  return new Error(`nothing was thrown for ${Object.keys(more).join(', ')}`)
}

/** One letter less than the longest name: the typing error that no other name is as close to. */
function misspelt(names: readonly string[]): readonly [wrong: string, meant: string] {
  const meant = [...names].sort((a, b) => b.length - a.length)[0]!
  const wrong = meant.slice(0, 1) + meant.slice(2)
  return [wrong, meant]
}

test('a misspelt option or one of the wrong kind is refused by whatever takes options', async () => {
  const places = optionPlaces()
  assert.ok(places.length > 200, `only ${places.length} places were found`)
  const problems: string[] = []
  const reached = new Set<string>()
  for (const place of places) {
    const { parameter, path, names, numbers } = place
    const where = `${parameter} ${path} `
    if (notOptions.some(([pattern]) => pattern.test(where))) continue
    if (!optionCalls.has(parameter)) {
      problems.push(`${where}is in neither list of helpers/option-calls.ts`)
      continue
    }
    reached.add(parameter)
    const [wrong, meant] = misspelt(names)
    const error = await errorOf(place, { [wrong]: undefined })
    const isNamed = error.message.includes(`${wrong} is not an option`)
    if (!(error instanceof TypeError) || !isNamed || !error.message.endsWith(`use ${meant}`)) {
      problems.push(`${where}{${wrong}} ${error.name}: ${error.message}`)
    }
    for (const [name, value] of numbers.flatMap((name) => [[name, NaN], [name, '3']] as const)) {
      const error = await errorOf(place, { [name]: value })
      const isRefused = error instanceof TypeError || error instanceof RangeError
      if (isRefused && error.message.includes(name)) continue
      problems.push(`${where}{${name}: ${value}} ${error.name}: ${error.message}`)
    }
  }
  assert.deepEqual(problems, [])
  assert.deepEqual([...optionCalls.keys()].filter((name) => !reached.has(name)), [], 'unknown')
})
