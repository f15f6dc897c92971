/** What the commands of a check show: the programs that they run, and modules loaded for them. */
import { posix } from 'node:path'

import { shellCommands } from '../shell-commands.js'
import {
  isCheckingName, isInCodeFolder, isMainName, isWorkName, languageOf, stemOf,
} from './file-kinds.js'

const INTERPRETERS =
  /^(?:node|tsx|ts-node|deno|bun|python[\d.]*|ruby|perl|php|sh|bash|dash|zsh)$/
/** What makes a program's output, not the program, what is checked. */
export const COMPARES: RegExp =
  /\b(?:diff|cmp|grep|comm|jq)\b|(?<!(?:npm|yarn|pnpm|make)[ ](?:run[ ])?)\btest\b|\[|<|\|(?!\|)/

/** Programs that the commands of a check run, where these programs are the check. */
export function programsRun(script: string, files: ReadonlySet<string>): readonly string[] {
  const compares = COMPARES.test(script)
  return programsIn(script, files).filter(
    (path) => isCheckingName(path) || (!compares && !isMainName(path) && !isInCodeFolder(path)),
  )
}

/** Programs that run before and after the tests, but for the work itself and what builds it. */
export function programsBeside(script: string, files: ReadonlySet<string>): readonly string[] {
  return programsIn(script, files).filter(
    (path) => !isInCodeFolder(path) && !BUILDS.test(stemOf(path)) && !isWorkName(path),
  )
}

const BUILDS = /(?:^|[^a-z])(?:build|compile|bundle|generate|gen|codegen|transpile|pack|format)/i

function programsIn(script: string, files: ReadonlySet<string>): readonly string[] {
  return shellCommands(script).flatMap(({ words, runs }) => {
    if (!runs) return []
    const texts = words.map(({ text }) => text)
    const at = texts.findIndex((text) => INTERPRETERS.test(posix.basename(text)))
    const argument = texts.slice(at + 1).find((text) => !text.startsWith('-')) ?? ''
    const path = posix.normalize(at === -1 ? texts[0]! : argument)
    return files.has(path) ? [path] : []
  })
}

/** Programs that are the values of options, as in `--require ./hooks.js`, also in variables. */
export function optionValues(script: string, files: ReadonlySet<string>): readonly string[] {
  return shellCommands(script).flatMap(({ words }) => {
    const parts = words.flatMap(({ text }) => text.split(/[\s=]+/))
    return parts.flatMap((part, i) => {
      const option = parts[i - 1] ?? ''
      const path = posix.normalize(part)
      const isProgram = option === '-f' && languageOf(path) === 'other'
      const isValue = /^--?\w/.test(option) && !RUNS.has(option)
      return isValue && !isProgram && languageOf(path) !== 'data' && files.has(path) ? [path] : []
    })
  })
}

/** Options before what is run or tested. */
const RUNS = new Set(['--test', '--run', '--', '-e', '-m', '-c', '--watch', '--bail', '-b'])
