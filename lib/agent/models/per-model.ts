/**
 * Options of a provider that differ from model to model.
 *
 * @module
 */

/**
 * Values by the names of models, in which `*` stands for any characters: `'gpt-4o*'`. An exact name
 * comes first, then the longest pattern; a name that none matches gets the default.
 */
export type ByModel<T> = { readonly [pattern: string]: T }

/** The value for a model; undefined when no pattern matches its name. */
export function valueFor<T>(values: ByModel<T>, model: string): T | undefined {
  if (Object.hasOwn(values, model)) return values[model]
  const matching = Object.keys(values).filter((pattern) => matches(pattern, model))
  const [longest] = matching.sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
  return longest === undefined ? undefined : values[longest]
}

function matches(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined || !name.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}
