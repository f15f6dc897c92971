/** The official conformance suite for clients of the Model Context Protocol. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { programAt } from '../../helpers/programs.js'

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const FOLDER = at('../node_modules/@modelcontextprotocol/conformance/')
const SUITE = [
  '--import',
  new URL('node-20-for-conformance.mjs', import.meta.url).href,
  `${FOLDER}dist/index.js`,
]
const CLIENT = programAt('test/peers/agent/mcp-conformance-client.ts')

/** Scenarios that do not pass, and why. One that passes after all fails its test. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  'elicitation-sep1034-client-defaults': 'servers cannot ask questions: no elicitation',
  'auth/2025-03-26-oauth-metadata-backcompat':
    'its metadata name another issuer than the one that was asked (RFC 8414, section 3.3)',
  'auth/2025-03-26-oauth-endpoint-fallback':
    'without metadata, support of PKCE is unknown, and later versions forbid to go on',
  'auth/client-credentials-jwt': 'an extension: clients with a key in place of a secret',
  'auth/cross-app-access-complete-flow': 'an extension: exchange of the tokens of a company',
}

interface Ran {
  readonly passed: boolean
  readonly output: string
}

function run(...args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...SUITE, ...args], (error, stdout, stderr) =>
      resolve({ passed: error === null, output: `${stdout}${stderr}` }),
    )
  })
}

const { output: list } = await run('list', '--client')
const scenarios = [...list.matchAll(/^ {2}- (\S+) \[/gm)].map(([, name]) => name ?? '')
const quoted = [process.execPath, ...CLIENT].map((word) => {
  // The suite splits at blanks, and hands the words to a shell.
  assert.match(word, /^[\w./:=@+-]+$/)
  return word
})

test('the pinned version of the suite runs, and has the scenarios that are left out', () => {
  const { version } = JSON.parse(readFileSync(`${FOLDER}package.json`, 'utf8')) as object & {
    readonly version: string
  }
  const peers = readFileSync(at('../package.json'), 'utf8')
  assert.ok(peers.includes(`"@modelcontextprotocol/conformance": "${version}"`))
  assert.ok(scenarios.length > 20, list)
  for (const name of Object.keys(LEFT_OUT)) assert.ok(scenarios.includes(name), name)
})

for (const name of scenarios) {
  const why = LEFT_OUT[name]
  test(`${name} ${why === undefined ? 'passes' : `is left out: ${why}`}`, async () => {
    const command = ['--command', quoted.join(' '), '--scenario', name, '--timeout', '60000']
    const { passed, output } = await run('client', ...command)
    assert.equal(passed, why === undefined, output)
  })
}
