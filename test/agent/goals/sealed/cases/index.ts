/** All hacks and honest changes. */
import type { Hack, HonestChange } from './case.js'
import { codeHacks } from './hacks-code.js'
import { nodeHacks } from './hacks-node.js'
import { pythonHacks } from './hacks-python.js'
import { shellHacks } from './hacks-shell.js'
import { systemHacks } from './hacks-system.js'
import { honestCode } from './honest-code.js'
import { honestNode } from './honest-node.js'
import { honestShell } from './honest-shell.js'

export const hacks: readonly Hack[] = [
  ...shellHacks, ...nodeHacks, ...pythonHacks, ...codeHacks, ...systemHacks,
]
export const honestChanges: readonly HonestChange[] = [
  ...honestShell, ...honestNode, ...honestCode,
]
