/**
 * Source of a module for processes of node:test that counts what the runner itself says of tests:
 * `[passed, failed]`, by the events of its stream where they arise. The report gets the same events
 * later, by streams, a protocol and an output that code under test can change or imitate.
 *
 * The runner's objects are met when it makes the first of them, which is an asynchronous resource.
 * On the way, methods that decide about tests are made read-only. Of versions of Node that were not
 * tried, null says that nothing was counted.
 */
export const NODE_TEST_OUTCOMES: string = String.raw`
'use strict'
const { AsyncResource, createHook } = require('node:async_hooks')
const { EventEmitter } = require('node:events')
const { apply, defineProperty, getPrototypeOf } = Reflect
const { emit } = EventEmitter.prototype
const { runInAsyncScope } = AsyncResource.prototype
const ErrorHere = Error
const { captureStackTrace } = Error
const major = parseInt(process.versions.node)

exports.countOutcomes = () => {
  if (major > 24) return null
  const seen = [0, 0]
  const hook = createHook({
    init: function init(id, type, trigger, resource) {
      if (type !== 'Test' || !isRoot(init)) return
      hook.disable()
      const { fail } = getPrototypeOf(resource)
      lock(getPrototypeOf(resource), { fail, runInAsyncScope })
      defineProperty(resource, 'reporter', {
        configurable: true,
        set: (stream) => {
          defineProperty(resource, 'reporter', { value: stream, writable: true })
          lock(stream, {
            emit(type, data) {
              count(seen, type, data)
              return apply(emit, stream, [type, data])
            },
          })
        },
      })
    },
  })
  hook.enable()
  return seen
}

function lock(object, methods) {
  for (const name in methods) {
    defineProperty(object, name, { value: methods[name], writable: false, configurable: false })
  }
}

function count(seen, type, data) {
  if (type !== 'test:pass' && type !== 'test:fail') return
  const isSkipped = data.skip !== undefined || (data.todo !== undefined && type === 'test:fail')
  if (!isSkipped && data.details?.type !== 'suite') seen[type === 'test:pass' ? 0 : 1]++
}

/** Whether the runner is making its root, and not one for a run that a test has started. */
function isRoot(init) {
  const { prepareStackTrace, stackTraceLimit } = ErrorHere
  let first = null
  let isRun = false
  try {
    ErrorHere.stackTraceLimit = 30
    ErrorHere.prepareStackTrace = (_, sites) => {
      for (let i = 0; i < sites.length; i++) {
        const file = sites[i].getFileName()
        if (file === 'node:async_hooks' || file === 'node:internal/async_hooks') continue
        first ??= file
        if (file === 'node:internal/test_runner/runner') isRun = true
      }
      return ''
    }
    const holder = {}
    captureStackTrace(holder, init)
    void holder.stack
  } finally {
    ErrorHere.prepareStackTrace = prepareStackTrace
    ErrorHere.stackTraceLimit = stackTraceLimit
  }
  return first === 'node:internal/test_runner/test' && !isRun
}
`
