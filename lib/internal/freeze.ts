/**
 * Freezes what is shared, so that whoever changes it learns so at once. With `NODE_ENV=production`
 * requests are not frozen, which costs nothing.
 *
 * @module
 */
/** Asked once: the environment is not read for every request. */
const isProduction = process.env['NODE_ENV'] === 'production'

/**
 * Freezes a value with all lists and plain objects in it, and returns it. What is frozen already is
 * not looked into; instances of classes, such as signals, are left alone.
 */
export function deepFreeze<T>(value: T): T {
  return isProduction ? value : frozen(value)
}

/** Does so with a list whose first `done` entries are frozen already, which it does not look at. */
export function deepFreezeList<T>(list: readonly T[], done: number): readonly T[] {
  if (isProduction) return list
  for (let i = done; i < list.length; i++) frozen(list[i])
  return Object.freeze(list)
}

/** Freezes it in production as well: for what others share. */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (!Array.isArray(value) && !isPlain(value)) return value
  for (const part of Object.values(value)) frozen(part)
  return Object.freeze(value)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
