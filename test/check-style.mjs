/**
 * Fails on lines over 100 columns in the sources, and on "octet" where "byte" is meant:
 * `node test/check-style.mjs`. In tests a line may be longer where one literal makes it so:
 * recorded data is not worth splitting.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const COLUMNS = 100
/** Projects that tests and the demo work on. */
const data = /^(test\/fixtures|examples\/demo-project)\//
const longLiteral = /(['"`/]).{60,}\1/
const octet = /\boctets?\b(?!-stream)/i

/** @param {string} path @param {string} line @returns {string | null} */
function problem(path, line) {
  if (line.length > COLUMNS && !(path.startsWith('test/') && longLiteral.test(line))) {
    return `${line.length} columns`
  }
  return path.startsWith('lib/') && octet.test(line) ? 'say byte' : null
}

const known = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root })
const files = String(known)
  .split('\n')
  .filter((path) => /\.(ts|mts|js|mjs|css|html)$/.test(path) && !data.test(path))
const found = files.flatMap((path) => {
  const lines = readFileSync(`${root}/${path}`, 'utf8').split('\n')
  return lines.flatMap((line, index) => {
    const wrong = problem(path, line)
    return wrong === null ? [] : [`${path}:${index + 1}: ${wrong}`]
  })
})
for (const line of found) console.error(line)
process.exitCode = found.length > 0 ? 1 : 0
