/**
 * Prints which of the names of models on the standard input, one a line, have no known price.
 *
 *     node --conditions=runwright-source --import tsx test/models-unknown.ts < names.txt
 */
import { readFileSync } from 'node:fs'
import { knownPrices } from 'runwright/agent'

const names = readFileSync(0, 'utf8').split(/\s+/).filter((name) => name !== '')
const unknown = names.filter((name) => knownPrices(name) === null)
for (const name of unknown) console.log(name)
console.error(`${unknown.length} of ${names.length} have no known price`)
process.exitCode = unknown.length > 0 ? 1 : 0
