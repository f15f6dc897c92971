import { escapeInvisible } from './escape-invisible.js'

/** A process warning, which Node prints: what came from outside cannot control the terminal. */
export function warn(message: string, options: { type?: string; code?: string } = {}): void {
  process.emitWarning(escapeInvisible(message), options)
}
