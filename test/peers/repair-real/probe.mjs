/** Calls what a module exports with the inputs from standard input, and writes what came of it. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'

/** @type {unknown[][]} */
const inputs = JSON.parse(readFileSync(0, 'utf8'))
const exported = await import(pathToFileURL(resolve(process.argv[2] ?? '')).href)

/** @type {Map<string, Function>} */
const functions = new Map()
/** @param {string} name @param {unknown} value @param {number} depth */
function collect(name, value, depth) {
  if (typeof value === 'function') functions.set(name, value)
  if (value === null || !['object', 'function'].includes(typeof value) || depth === 0) return
  for (const key of Object.keys(/** @type {object} */ (value))) {
    collect(`${name}.${key}`, Reflect.get(/** @type {object} */ (value), key), depth - 1)
  }
}
for (const [name, value] of Object.entries(exported)) collect(name, value, 2)

const unique = [...new Map([...functions].map(([name, one]) => [one, name])).entries()]
const options = { depth: 6, maxArrayLength: 50, maxStringLength: 2000, breakLength: Infinity }
let returned = 0
const results = []
for (const [one, name] of unique) {
  for (const input of inputs) {
    const args = structuredClone(input)
    try {
      const result = one(...args)
      const settled = result instanceof Promise ? 'a promise' : inspect(result, options)
      if (result instanceof Promise) result.catch(() => {})
      results.push(`${name}: ${settled} ${inspect(args, options)}`)
      returned += 1
    } catch (error) {
      results.push(`${name}: ${String(error).slice(0, 200)}`)
    }
  }
}
process.stdout.write(`\n${JSON.stringify({ returned, results })}`, () => process.exit(0))
