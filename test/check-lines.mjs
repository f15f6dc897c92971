/**
 * Fails on lines over 100 columns in the sources: `node test/check-lines.mjs`. In tests a line may
 * be longer where one literal makes it so: recorded data is not worth splitting.
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

const known = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root })
const files = String(known)
  .split('\n')
  .filter((path) => /\.(ts|mts|js|mjs|css)$/.test(path) && !data.test(path))
const long = files.flatMap((path) => {
  const lines = readFileSync(`${root}/${path}`, 'utf8').split('\n')
  return lines.flatMap((line, index) => {
    if (line.length <= COLUMNS) return []
    if (path.startsWith('test/') && longLiteral.test(line)) return []
    return [`${path}:${index + 1}: ${line.length} columns`]
  })
})
for (const line of long) console.error(line)
if (long.length > 0) console.error(`${long.length} lines are over ${COLUMNS} columns`)
process.exitCode = long.length > 0 ? 1 : 0
