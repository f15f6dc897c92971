/** Programs of others as children, and ports for them. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

/** Debian keeps servers in a folder that is not on everybody's path. */
const PATH = `${process.env['PATH']}:/usr/sbin`

/** Why a program cannot be run here, or false. */
export function missing(binary: string): string | false {
  const found = spawnSync('sh', ['-c', `command -v ${binary}`], { env: { PATH } }).status === 0
  return found ? false : `${binary} is not installed`
}

/**
 * A port for a program that must be told one. The system hands none of these out by itself: not
 * to a listener on port 0, and not to a connection on its way out, which could otherwise take the
 * port before the program has it, or, asking for it too early, be connected to itself.
 */
export async function freePort(): Promise<number> {
  const first = firstByChance()
  for (;;) {
    const port = first - 1 - Math.floor(Math.random() * Math.min(20_000, first - 1_024))
    const probe = createServer()
    const free = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!free) continue
    probe.close()
    await once(probe, 'close')
    return port
  }
}

/** The first of the ports that the system hands out. */
function firstByChance(): number {
  const range = '/proc/sys/net/ipv4/ip_local_port_range'
  const first = existsSync(range) ? Number.parseInt(readFileSync(range, 'utf8'), 10) : 32_768
  return Math.max(first, 10_000)
}

/** Starts a program and resolves once it accepts connections on `port`; the caller ends it. */
export async function startProgram(
  binary: string,
  args: readonly string[],
  port: number,
): Promise<ChildProcess> {
  const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH } })
  let said = ''
  let failed = false
  child.stderr
    .setEncoding('utf8')
    .on('data', (text: string) => (said = (said + text).slice(-2_000)))
  child.once('error', (error) => {
    failed = true
    said = error.message
  })
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const open = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (open) return child
    if (failed || child.exitCode !== null || child.signalCode !== null)
      throw new Error(`${binary} did not start: ${said}`)
    // A program has no event for "I listen now": asking again is all there is.
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
