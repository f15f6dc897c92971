/**
 * Source of a module that makes the functions of node:assert read-only in the process that loads
 * it, so that code under test cannot replace `assert.equal` by a function that never fails. Other
 * assertion libraries, and the runner's own objects, can still be patched. In the process of a test
 * file it removes itself from the environment.
 */
export const ASSERT_LOCK: string = String.raw`
'use strict'
const assert = require('node:assert')
for (const object of [assert, assert.strict]) {
  for (const name of Object.keys(object)) {
    const { value } = Object.getOwnPropertyDescriptor(object, name)
    if (typeof value === 'function') {
      Object.defineProperty(object, name, { value, writable: false, configurable: false })
    }
  }
}
if (process.env.NODE_TEST_CONTEXT !== undefined) {
  const rest = (process.env.NODE_OPTIONS ?? '').replace(@OPTIONS@, '').trim()
  if (rest === '') delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = rest
}
`
