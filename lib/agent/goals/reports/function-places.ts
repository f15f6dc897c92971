/**
 * Source of a module that tells who does something in the memory that code under test shares with
 * its tests: by the stack, or by the place where a function stands, as the inspector tells.
 */
export const FUNCTION_PLACES: string = String.raw`
'use strict'
const { sep } = require('node:path')
let Session = null
try {
  ;({ Session } = require('node:inspector'))
} catch {
  // Node may be built without it.
}
const ROOT = @ROOT@
const NONCE = '@NONCE@'
const { apply, defineProperty, getOwnPropertyDescriptor: describe, ownKeys } = Reflect
const { get, set } = Map.prototype
const MapOf = Map
const ErrorHere = Error
const { captureStackTrace } = Error
const decode = decodeURIComponent
const MODULES = sep + 'node_modules' + sep
const PROTOCOL = /^file:\/\//
const pathOf = (url) => (PROTOCOL.test(url) ? decode(url.slice(7).replace(/[?#].*$/, '')) : url)
const isOurs = (path) => path.startsWith(ROOT + sep) && !path.includes(MODULES)
exports.isOurs = isOurs

delete require.cache[__filename]

/**
 * The innermost file of the workspace on the stack or null, the file of the innermost frame, and
 * whether it is in exit().
 */
exports.caller = (from, limit = 200) => {
  const { prepareStackTrace, stackTraceLimit } = ErrorHere
  let found = null
  let first = null
  let exits = false
  try {
    ErrorHere.stackTraceLimit = limit
    ErrorHere.prepareStackTrace = (_, sites) => {
      for (let i = 0; i < sites.length; i++) {
        const file = pathOf(sites[i].getFileName() ?? '')
        if (found === null && isOurs(file)) found = file
        if (first === null && !file.startsWith(__dirname)) first = file
        if (file === 'node:internal/process/per_thread') exits = true
      }
      return ''
    }
    const holder = {}
    if (from === null) captureStackTrace(holder)
    else captureStackTrace(holder, from)
    void holder.stack
  } catch {
  } finally {
    ErrorHere.prepareStackTrace = prepareStackTrace
    ErrorHere.stackTraceLimit = stackTraceLimit
  }
  return { file: found, first, exits }
}

/**
 * For each function the file of the workspace in which it stands, '' for one that stands elsewhere,
 * null where nobody knows. All at once, since the inspector first names each script.
 */
exports.filesOf = (values) => {
  const files = []
  for (let i = 0; i < values.length; i++) {
    defineProperty(files, i, { value: Session === null ? '' : null, writable: true })
  }
  if (Session === null || values.length === 0) return files
  const session = new Session()
  const urls = new MapOf()
  const place = (objectId, depth) => {
    let found = null
    session.post('Runtime.getProperties', { objectId, ownProperties: true }, (_, given) => {
      const { internalProperties: parts = [], result = [] } = given
      const part = (name) => {
        for (let i = 0; i < parts.length; i++) if (parts[i].name === name) return parts[i].value
      }
      const location = part('[[FunctionLocation]]')
      // Of a bound function and a proxy, what they stand for.
      const target = part('[[TargetFunction]]') ?? part('[[Handler]]')
      if (location !== undefined) {
        const url = apply(get, urls, [location.value.scriptId])
        if (url) found = isOurs(pathOf(url)) ? pathOf(url) : ''
      } else if (target !== undefined && depth > 0) found = place(target.objectId, depth - 1)
      else if (part('[[Scopes]]') === undefined && depth > 0) {
        for (let i = 0; i < result.length && found === null; i++) {
          const { value } = result[i]
          if (value?.type === 'function') found = place(value.objectId, depth - 1)
        }
      }
    })
    return found
  }
  try {
    session.connect()
    session.on('Debugger.scriptParsed', ({ params }) =>
      apply(set, urls, [params.scriptId, params.url]))
    session.post('Debugger.enable')
    defineProperty(globalThis, NONCE, { value: values, configurable: true })
    for (let i = 0; i < values.length; i++) {
      const expression = 'globalThis["' + NONCE + '"][' + i + ']'
      session.post('Runtime.evaluate', { expression }, (_, { result: { objectId } }) => {
        if (objectId !== undefined) files[i] = place(objectId, 3)
      })
    }
  } catch {
    // It stands in no file.
  } finally {
    delete globalThis[NONCE]
    session.disconnect()
  }
  return files
}

/**
 * The functions of objects, by names of these; gives what lists those that were replaced since, and
 * of the second ones those that were added as well.
 */
exports.keep = (objects, growing = {}) => {
  const kept = []
  const all = { ...objects, ...growing }
  for (const name of ownKeys(all)) {
    for (const key of all[name] == null ? [] : ownKeys(all[name])) {
      const value = describe(all[name], key)?.value
      if (typeof value !== 'function' || key === 'constructor') continue
      kept[kept.length] = { what: name + '.' + String(key), object: all[name], key, value }
    }
  }
  const isKept = (object, key) => {
    for (let i = 0; i < kept.length; i++) {
      if (kept[i].object === object && kept[i].key === key) return true
    }
    return false
  }
  return () => {
    const replaced = []
    const add = (what, value) => {
      defineProperty(replaced, replaced.length, { value: { what, value } })
    }
    for (let i = 0; i < kept.length; i++) {
      const { what, object, key, value } = kept[i]
      const now = describe(object, key)
      const current = now?.value ?? now?.get
      if (current !== value && current != null) add(what, current)
    }
    for (const name in growing) {
      const keys = ownKeys(growing[name])
      for (let i = 0; i < keys.length; i++) {
        const value = growing[name][keys[i]]
        if (typeof value === 'function' && !isKept(growing[name], keys[i])) {
          add(name + '.' + String(keys[i]), value)
        }
      }
    }
    return replaced
  }
}
`
