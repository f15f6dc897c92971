import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { resolveEngineConfig } from '../lib/agent/config.js'
import { resolveMcpServer } from '../lib/agent/mcp/options.js'
import { resolveConfig } from '../lib/server/config.js'
import { read } from './helpers/markdown.js'
import { optionRows, PAGE, withTables, type OptionRow } from './reference/options.js'

let rows: ReturnType<typeof optionRows> | undefined
/** Made once: it takes seconds. */
const tables = (): ReturnType<typeof optionRows> => (rows ??= optionRows())

const engine = { store: new MemoryStore(), roots: [tmpdir()] }
const mcpServer = { name: 'a', command: 'x' }
/** What is resolved of options that state no value. */
const resolved: Readonly<Record<string, object>> = {
  'Engine options': {
    ...resolveEngineConfig({ ...engine, delegation: {} }),
    executor: resolveEngineConfig(engine).executor.name,
    mcpServers: [resolveMcpServer(mcpServer)],
  },
  'Service options': resolveConfig({ engine, limits: { perTenant: { runs: 1 } } }),
}
/** Resolved to something else than a value, or not by these functions. */
const notCompared = new Set([
  'mcpServers[].effect', 'holdout.allowed_skips', 'holdout.tell', 'allowedOrigins', 'allowedQuery',
  'limits.perTenant.runs', 'limits.perTenant.costUsdPerDay', 'webhooks.endpoints[].allowPrivate',
  'webhooks.retryMs',
])

/** The value that a default begins with; undefined where it is words. */
function valueOf({ byDefault }: OptionRow): unknown {
  const [, bytes, unit] = /^(\d+) (MiB|GiB)$/.exec(byDefault) ?? []
  if (bytes !== undefined) return Number(bytes) * (unit === 'MiB' ? 2 ** 20 : 2 ** 30)
  const [, text, value] = /^(?:'([^']*)'|(true|false|null|\d+)$)/.exec(byDefault) ?? []
  return text ?? (value === undefined ? undefined : JSON.parse(value))
}

function at(config: object, path: string): unknown {
  const steps = path.replaceAll('[]', '.0').split('.')
  return steps.reduce<any>((value, step) => value?.[step], config)
}

test('docs/reference.md lists the options of engines and services as they are declared', () => {
  const page = read(PAGE)
  const asDeclared = withTables(page, tables())
  // Only the lines that differ: the page is long.
  const missing = asDeclared.split('\n').filter((line) => !page.includes(`${line}\n`))
  assert.deepEqual(missing, [], 'run npm run reference')
  assert.ok(page === asDeclared, 'run npm run reference: options are listed that do not exist')
})

test('every option that the page lists says what it does', () => {
  const rows = [...tables().values()].flat()
  assert.ok(rows.length > 90, `only ${rows.length} options were found`)
  assert.deepEqual(rows.filter(({ does }) => !/[.?]$/.test(does)).map(({ name }) => name), [])
})

test('the defaults that the page states are the values that options have', () => {
  let compared = 0
  for (const [heading, rows] of tables()) {
    for (const row of rows) {
      const value = valueOf(row)
      if (value === undefined || notCompared.has(row.name)) continue
      const actual = at(resolved[heading]!, row.name)
      // Where a default is null, an option that is not set may stay undefined.
      assert.equal(actual ?? null, value, row.name)
      compared += 1
    }
  }
  assert.ok(compared > 30, `only ${compared} were compared`)
})
