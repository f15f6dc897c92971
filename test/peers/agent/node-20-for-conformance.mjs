/** The suite wants a function of Node 22 that its client scenarios never call. */
import * as fs from 'node:fs'
import { register } from 'node:module'

const code = `export * from 'node:fs'; export const globSync = () => []`
const substitute = JSON.stringify(`data:text/javascript,${encodeURIComponent(code)}`)
const hooks = `export async function resolve(specifier, context, next) {
  if (specifier !== 'fs' || !context.parentURL?.includes('/conformance/')) {
    return next(specifier, context)
  }
  return { url: ${substitute}, shortCircuit: true }
}`
if (!('globSync' in fs)) register(`data:text/javascript,${encodeURIComponent(hooks)}`)
