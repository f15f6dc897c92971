import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/** Imports a package of test/peers. @param {string} specifier @returns {Promise<any>} */
export function peer(specifier) {
  const require = createRequire(new URL('../../peers/package.json', import.meta.url))
  return import(pathToFileURL(require.resolve(specifier)).href)
}
