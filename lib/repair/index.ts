/**
 * The model `builtin:repair`, a deterministic program that repairs code: no language model, no key,
 * no network. It is a provider of the engine, with the tool that it works with.
 *
 * @module
 */
export { repairModel } from './repair-model.js'
