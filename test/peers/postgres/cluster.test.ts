import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { scratch } from '../../helpers/engine.js'
import { programAt } from '../../helpers/programs.js'
import { noPostgres, openDatabase, urlOf } from './postgres.js'

const { connection, pool } = await openDatabase()

test(
  'examples/cluster.ts completes all its runs although one of its processes is killed',
  { skip: noPostgres },
  async (t) => {
    const home = scratch(t)
    const child = spawn(process.execPath, programAt('examples/cluster.ts'), {
      cwd: home,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: home,
        TMPDIR: home,
        DATABASE_URL: urlOf(connection),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.after(() => child.kill('SIGKILL'))
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    const [code] = (await once(child, 'close')) as [number | null]
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /^3 processes wait for runs\n12 of 24 runs have ended; one process is killed\n24 of 24 runs achieved their goal in [\d.]+ s, \d+ events, none lost\n\d+ of them were taken over/,
    )
    const { rows } = await pool.query(`SELECT 1 FROM pg_namespace WHERE nspname LIKE 'runwright%'`)
    assert.deepEqual(rows, [])
  },
)
