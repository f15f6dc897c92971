import assert from 'node:assert/strict'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { PolledPipe } from '../../../lib/agent/executors/output-pipe.js'

// Node tells when a pipe has something; other runtimes have to be asked again and again.

/** A shell that writes to a pipe, and what its reader has. */
class Piped implements Disposable {
  readonly pipe: PolledPipe
  readonly child: ChildProcess
  readonly readEnd: number
  text = ''
  tell: () => void = () => undefined

  constructor(command: string) {
    const folder = mkdtempSync(join(tmpdir(), 'runwright-pipe-'))
    const path = join(folder, 'output')
    execFileSync('mkfifo', [path])
    this.readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writeEnd = openSync(path, constants.O_WRONLY)
    rmSync(folder, { recursive: true })
    this.pipe = new PolledPipe(this.readEnd, (chunk) => {
      this.text += chunk
      this.tell()
    })
    this.child = spawn('/bin/sh', ['-c', command], { stdio: ['pipe', writeEnd, 'ignore'] })
    closeSync(writeEnd)
  }

  [Symbol.dispose](): void {
    this.child.kill('SIGKILL')
    this.pipe.close()
  }
}

test('a polled pipe gives all of an output that does not fit into it, and ends with it', async () => {
  using piped = new Piped('seq 1 400000 && echo end')
  await once(piped.child, 'exit')
  while (!piped.pipe.closed) await new Promise((resolve) => setImmediate(resolve))
  assert.match(piped.text, /^1\n2\n[^]*\n400000\nend\n$/)
})

test('a polled pipe gives output as it comes, and is closed while others hold it', async () => {
  using piped = new Piped('read word; echo "$word"; read word')
  const told = new Promise<void>((resolve) => (piped.tell = resolve))
  piped.child.stdin!.write('one\n')
  await told
  assert.equal(piped.text, 'one\n')
  assert.equal(piped.pipe.closed, false)
  piped.pipe.close()
  assert.throws(() => fstatSync(piped.readEnd), { code: 'EBADF' })
  piped.pipe.close()
  assert.equal(piped.pipe.closed, true)
})
