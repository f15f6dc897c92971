import { existsSync, readFileSync } from 'node:fs'
import type { Files } from '../../helpers/files.js'

/** A clone: its test needs a package that only the lock file names, and a fix. */
export const CLONE: Files = {
  'package.json': JSON.stringify({
    name: 'clone', scripts: { test: 'node --test' }, dependencies: { three: '1.0.0' },
  }),
  'package-lock.json': JSON.stringify({
    name: 'clone',
    lockfileVersion: 3,
    packages: {
      '': { name: 'clone', dependencies: { three: '1.0.0' } },
      'node_modules/three': { version: '1.0.0' },
    },
  }),
  'lib/add.js': 'module.exports = (a, b) => a - b\n',
  'test/add.test.js':
    "require('node:test')('adds', () =>\n" +
    "  require('node:assert').equal(require('../lib/add.js')(1, 2), require('three')))\n",
}

export const FIX = 'module.exports = (a, b) => a + b\n'

/** Installs the package, and counts in a file outside of the folder how often it did. */
export function installs(counter: string): string {
  const file = 'node_modules/three/index.js'
  return `echo >> '${counter}' && mkdir -p node_modules/three && echo module.exports=3 > ${file}`
}

export function timesRun(counter: string): number {
  return existsSync(counter) ? readFileSync(counter, 'utf8').length : 0
}
