/**
 * A real PostgreSQL server in a scratch folder, created by `initdb`, on a free port. PostgreSQL
 * refuses to run as root: for tests that do, it runs as an unprivileged user.
 *
 * @module
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { freePort } from '../programs.js'

/** The user `nobody`. */
const UNPRIVILEGED = 65_534

/** Why PostgreSQL cannot be started here; undefined when it can. */
export const noPostgres: string | undefined =
  binaries() === undefined
    ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)'
    : undefined

/** A running server. */
export interface Postgres {
  readonly port: number
  /** A pool of connections to it, which the caller ends. */
  pool(options?: pg.PoolConfig): pg.Pool
  /** `fast` disconnects clients, `immediate` is a crash. */
  stop(how?: 'fast' | 'immediate'): Promise<void>
  /** Restarts it on the same port with the same data. */
  start(): Promise<void>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

/** Starts a server with these settings of postgresql.conf. */
export async function startPostgres(settings: Record<string, string> = {}): Promise<Postgres> {
  const bin = binaries()
  if (bin === undefined) throw new Error(noPostgres)
  const folder = mkdtempSync(join(tmpdir(), 'runwright-pg-'))
  const asRoot = process.getuid?.() === 0
  if (asRoot) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
  const data = join(folder, 'data')
  const user = asRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
  const env = { PATH: process.env['PATH'], HOME: folder, LC_ALL: 'C' }
  const make = ['-D', data, '-U', 'runwright', '--auth=trust', '--encoding=UTF8', '--no-sync']
  execFileSync(join(bin, 'initdb'), make, { ...user, env, cwd: folder, stdio: 'ignore' })
  const port = await freePort()
  let server: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const all = {
      port: String(port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: folder,
      max_connections: '200',
      ...settings,
    }
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(join(bin, 'postgres'), ['-D', data, ...flags], {
      ...user,
      env,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    server = child
    const log: string[] = []
    await new Promise<void>((resolve, reject) => {
      createInterface(child.stderr).on('line', (line) => {
        if (log.push(line) > 50) log.shift()
        if (line.includes('database system is ready to accept connections')) resolve()
      })
      child.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${log.join('\n')}`)))
    })
  }

  const stop = async (how: 'fast' | 'immediate' = 'fast'): Promise<void> => {
    const child = server
    server = undefined
    if (child === undefined || child.exitCode !== null) return
    const exited = once(child, 'exit')
    child.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await exited
  }

  await start()
  return {
    port,
    pool: (options) => poolTo(port, options),
    stop,
    start,
    async remove() {
      await stop('immediate')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A pool of connections to a local server, which the caller ends. */
export function poolTo(port: number, options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({
    host: '127.0.0.1',
    port,
    user: 'runwright',
    database: 'postgres',
    ...options,
  })
  pool.on('error', () => undefined) // idle connections are lost when the server restarts
  return pool
}

function binaries(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(':')
  const debian = '/usr/lib/postgresql'
  if (existsSync(debian))
    for (const version of readdirSync(debian)) folders.push(join(debian, version, 'bin'))
  return folders.find(
    (folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')),
  )
}
