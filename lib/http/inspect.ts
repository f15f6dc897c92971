import { inspect } from 'node:util'

/** The key under which `util.inspect` looks for an object's own way of being printed. */
export const INSPECT: typeof inspect.custom = inspect.custom
