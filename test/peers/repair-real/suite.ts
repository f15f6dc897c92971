/** Runs the tests of a package outside of any engine, and counts them. */
import { spawn } from 'node:child_process'
import type { RealPackage, Runner } from './packages.js'

const MAX_OUTPUT = 4 * 1024 * 1024
const COLOURS = /\x1b\[[\d;]*m/g

export interface SuiteResult {
  readonly exitCode: number
  readonly timedOut: boolean
  readonly passed: number
  readonly failed: number
  readonly seconds: number
  readonly output: string
}

/** The command of the whole suite, without the files that are held out. */
export function suiteCommand(one: RealPackage, heldOut: readonly string[] = []): string {
  const words = one.all.split(' ').filter((word) => !heldOut.includes(word))
  return [one.command, ...words].join(' ').trim()
}

export const passes = ({ exitCode, failed, passed }: SuiteResult): boolean =>
  exitCode === 0 && failed === 0 && passed > 0

/** Python's caches are keyed by whole seconds, in which a file may change twice. */
export function suiteEnvironment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    ...process.env, PYTHONDONTWRITEBYTECODE: '1', FORCE_COLOR: '0', CI: 'true',
  }
  for (const name of ['NODE_TEST_CONTEXT', 'NODE_OPTIONS', 'NODE_V8_COVERAGE']) delete env[name]
  return env
}

export async function runSuite(
  runner: Runner, command: string, cwd: string, limitMs = 20_000,
): Promise<SuiteResult> {
  const started = performance.now()
  const child = spawn('/bin/sh', ['-c', command], {
    cwd, env: suiteEnvironment(), detached: true, stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let timedOut = false
  const add = (chunk: Buffer): void => {
    if (output.length < MAX_OUTPUT) output += chunk.toString()
  }
  child.stdout.on('data', add)
  child.stderr.on('data', add)
  const timer = setTimeout(() => {
    timedOut = true
    process.kill(-child.pid!, 'SIGKILL')
  }, limitMs)
  const exitCode = await new Promise<number>((settle, fail) => {
    child.on('error', fail)
    child.on('close', (code) => settle(code ?? 137))
  })
  clearTimeout(timer)
  const seconds = (performance.now() - started) / 1000
  return { exitCode, timedOut, seconds, output, ...counted(runner, output) }
}

/** How many tests passed and failed by what a runner printed; assertions where it counts those. */
export function counted(runner: Runner, printed: string): { passed: number; failed: number } {
  const output = printed.replaceAll(COLOURS, '')
  const sum = (pattern: RegExp): number =>
    [...output.matchAll(pattern)].reduce((total, [, number]) => total + Number(number), 0)
  const lines = (pattern: RegExp): number => output.match(pattern)?.length ?? 0
  switch (runner) {
    case 'tape':
    case 'tap':
      return { passed: lines(/^ *ok \d+/gm), failed: lines(/^ *not ok \d+(?!.*# (?:TODO|SKIP))/gm) }
    case 'node:test':
      return { passed: sum(/^(?:#|ℹ) pass (\d+)/gm), failed: sum(/^(?:#|ℹ) fail (\d+)/gm) }
    case 'mocha':
      return { passed: sum(/^ +(\d+) passing/gm), failed: sum(/^ +(\d+) failing/gm) }
    case 'jest':
    case 'vitest': {
      const summary = /^ *Tests:? .*$/m.exec(output)?.[0] ?? ''
      const number = (word: string): number =>
        Number(new RegExp(`(\\d+) ${word}`).exec(summary)?.[1] ?? 0)
      return { passed: number('passed'), failed: number('failed') }
    }
    case 'ava':
      return { passed: sum(/^ *(\d+) tests? passed/gm), failed: sum(/^ *(\d+) tests? failed/gm) }
    case 'pytest': {
      const summary = /^=*.*\b(?:passed|failed|errors?)\b.* in [\d.]+s.*$/m.exec(output)?.[0] ?? ''
      const number = (word: string): number =>
        Number(new RegExp(`(\\d+) ${word}`).exec(summary)?.[1] ?? 0)
      return { passed: number('passed'), failed: number('failed') + number('error') }
    }
    case 'unittest': {
      const failed = sum(/\bfailures=(\d+)/g) + sum(/\berrors=(\d+)/g)
      return { passed: Math.max(sum(/^Ran (\d+) tests?/gm) - failed, 0), failed }
    }
  }
}
