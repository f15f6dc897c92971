import type { ModelRequest } from '../model.js'

/** Tool names that every provider accepts. */
const PLAIN_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/

/**
 * Translates tool names to the wire and back. Names that a provider would refuse, such as those of
 * MCP servers or those that a model invented in an earlier turn, are substituted on the wire.
 */
export class ToolNames {
  readonly #toWire = new Map<string, string>()
  readonly #fromWire = new Map<string, string>()

  constructor(request: Pick<ModelRequest, 'tools'>) {
    for (const { name } of request.tools) if (PLAIN_NAME.test(name)) this.#learn(name, name)
    for (const { name } of request.tools) this.toWire(name)
  }

  /** The name to send for a tool. */
  toWire(name: string): string {
    const known = this.#toWire.get(name)
    if (known !== undefined) return known
    if (PLAIN_NAME.test(name)) return name
    let base = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 60)
    if (!/^[a-zA-Z_]/.test(base)) base = `_${base}`
    let wire = base
    for (let n = 2; this.#fromWire.has(wire); n++) wire = `${base}_${n}`
    this.#learn(name, wire)
    return wire
  }

  /** The tool that a name on the wire stands for; unknown names are returned unchanged. */
  fromWire(wire: string): string {
    return this.#fromWire.get(wire) ?? wire
  }

  #learn(name: string, wire: string): void {
    this.#toWire.set(name, wire)
    this.#fromWire.set(wire, name)
  }
}
