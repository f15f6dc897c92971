import { providersFromEnvironment, type ModelProvider } from '../agent/index.js'
import { repairModel } from '../repair/index.js'

/** The model of runs that name none. */
export const DEFAULT_MODEL = 'builtin:repair'

/** The model that needs no key, and those of providers that have one in the environment. */
export function modelProviders(): readonly ModelProvider[] {
  return [repairModel(), ...providersFromEnvironment(process.env)]
}
