/**
 * Every exported function and class is called with nothing, null, a string and an empty object. It
 * may accept them; but what it throws is an error of its own that says what is wrong, never one of
 * the engine's about a value that it did not look at.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as agent from 'runwright/agent'
import * as testing from 'runwright/agent/testing'
import * as http from 'runwright/http'
import * as server from 'runwright/server'
import * as ws from 'runwright/ws'

const modules: Readonly<Record<string, object>> = { http, ws, agent, testing, server }
const inputs: readonly (readonly unknown[])[] = [[], [null], ['x'], [{}]]
/** Of no use to a caller, who did not write what it speaks of. `got undefined` is no such message. */
const ENGINE_MADE =
  /cannot \w+ |is not (a function|iterable|a constructor|defined)|(?<!got (\w+, )*)undefined/i
/** Marked `@internal`, or pure functions over records, states and usage of the package itself. */
const EXEMPT =
  /^(Request\.(fromParts|ofCall)|(Async)?Response\.from|Headers\.fromWire|foldHead|summarize|transition|costOf)$/

type AnyFunction = (...input: readonly unknown[]) => unknown

function isClass(value: AnyFunction): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value))
}

/** The functions of a module by name: classes are called with `new`; static methods are included. */
function* callables(module: object): Generator<readonly [name: string, call: AnyFunction]> {
  for (const [name, value] of Object.entries(module)) {
    if (typeof value !== 'function') continue
    if (!isClass(value)) {
      yield [name, value as AnyFunction]
      continue
    }
    yield [`new ${name}`, (...input) => Reflect.construct(value, input)]
    for (const [method, own] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
      if (typeof own.value !== 'function' || method === 'prototype') continue
      yield [`${name}.${method}`, (...input) => own.value.apply(value, input)]
    }
  }
}

/** What a call throws, or what its promise or its first step rejects with; undefined for nothing. */
async function outcome(call: AnyFunction, input: readonly unknown[]): Promise<unknown> {
  try {
    const result = (await call(...input)) as Partial<AsyncGenerator & AsyncDisposable> | undefined
    if (typeof result?.next === 'function') await result.next()
    else if (typeof result === 'object') await result?.[Symbol.asyncDispose]?.()
    return undefined
  } catch (error) {
    return error
  }
}

test('no exported function answers a wrong argument with an error of the engine', async () => {
  const problems: string[] = []
  for (const [module, exported] of Object.entries(modules)) {
    const own = Object.values(exported).filter((value) => typeof value === 'function')
    for (const [name, call] of callables(exported)) {
      if (EXEMPT.test(name)) continue
      for (const input of inputs) {
        const error = await outcome(call, input)
        if (error === undefined) continue
        const isOwn = own.some((type) => type.prototype instanceof Error && error instanceof type)
        const good = isOwn || error instanceof TypeError || error instanceof RangeError
        const { message } = error as Error
        if (good && !ENGINE_MADE.test(message)) continue
        const shown = JSON.stringify(input).slice(1, -1)
        problems.push(`${module}: ${name}(${shown}) ${(error as Error).name}: ${message}`)
      }
    }
  }
  assert.deepEqual(problems, [])
})
