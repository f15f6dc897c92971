import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { echoServer } from './echo-server.js'
import { missing, PYTHON } from './python.js'

const run = promisify(execFile)
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

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
