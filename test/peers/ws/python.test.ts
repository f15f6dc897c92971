import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { echoServer } from './echo-server.js'

/** Debian's own interpreter, the only one that finds Debian's python3-… packages. */
const PYTHON = process.env['PYTHON'] ?? '/usr/bin/python3'

const run = promisify(execFile)
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** Why a test must be skipped here, or false. */
function missing(module: string): string | false {
  try {
    execFileSync(PYTHON, ['-c', `import ${module}`], { stdio: 'ignore' })
    return false
  } catch {
    return `${PYTHON} has no ${module}: apt-get install python3-${module}`
  }
}

for (const mode of ['plain', 'deflate']) {
  test(
    `python3-websockets gets its echoes, ${mode}`,
    { skip: missing('websockets') },
    async () => {
      await using server = await echoServer(mode === 'deflate')
      const { stdout } = await run(PYTHON, [script('echo_websockets.py'), server.url, mode])
      assert.equal(stdout, `echo ${mode === 'deflate' ? 'True' : 'False'}\n4000\n`)
      await server.ended(1)
      assert.deepEqual(server.ends, [{ code: 4000, reason: 'done', wasClean: true, error: null }])
    },
  )

  test(
    `python3-autobahn gets its echoes, ${mode}`,
    { skip: missing('autobahn') },
    async () => {
      await using server = await echoServer(mode === 'deflate')
      const { stdout } = await run(PYTHON, [
        script('echo_autobahn.py'),
        '127.0.0.1',
        `${server.port}`,
        mode,
      ])
      assert.equal(stdout, `True 4000 ${mode === 'deflate' ? 'True' : 'False'} 0\n`)
      await server.ended(1)
      assert.deepEqual(server.ends, [{ code: 4000, reason: 'done', wasClean: true, error: null }])
    },
  )
}
