/**
 * A real PostgreSQL server in a scratch folder, created by `initdb`, on a free port. PostgreSQL
 * refuses to run as root: for tests that do, it runs as an unprivileged user.
 *
 * 1. A test file gets a database of its own from {@link openDatabase}, on the server that all files
 *    of one run share. A file that runs alone starts that server.
 * 2. A test that stops or configures its server starts one with {@link startPostgres}.
 *
 * @module
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import pg from 'pg'
import { freePort } from '../programs.js'
import { sharedService } from '../services/client.js'

/** The user `nobody`. */
const UNPRIVILEGED = 65_534

/** Why PostgreSQL cannot be started here; undefined when it can. */
export const noPostgres: string | undefined =
  binaries() === undefined
    ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)'
    : undefined

/** How clients reach a database, for pools of this process and of its children. */
export interface Connection {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
}

/** A running server. */
export interface Postgres {
  /** To the database that every server has. */
  readonly connection: Connection
  /** A pool of connections to that database, which the caller ends. */
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
  const connection = connectionTo(port)
  return {
    connection,
    pool: (options) => poolTo(connection, options),
    stop,
    start,
    async remove() {
      await stop('immediate')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** To the database that a local server on this port has from the start. */
export function connectionTo(port: number): Connection {
  return { host: '127.0.0.1', port, user: 'runwright', database: 'postgres' }
}

/** The same as a URL. */
export function urlOf({ host, port, user, database }: Connection): string {
  return `postgres://${user}@${host}:${port}/${database}`
}

/** A pool of connections to a database, which the caller ends. */
export function poolTo(connection: Connection, options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ ...connection, ...options })
  pool.on('error', () => undefined) // idle connections are lost when the server restarts
  return pool
}

/** The database of a test file. */
export interface TestDatabase {
  readonly connection: Connection
  /** A pool that all tests of the file share, and that ends with the file. */
  readonly pool: pg.Pool
  /** The name of a schema that no other test of the file has. */
  newSchema(): string
}

/** The advisory locks of this database, and not those of others on its server. */
export const ADVISORY_LOCKS = `FROM pg_locks JOIN pg_database ON pg_locks.database = pg_database.oid
  WHERE locktype = 'advisory' AND datname = current_database()`

/** Of a server on which the tests of several files run at the same time. */
export const SHARED_SETTINGS = { fsync: 'off', max_connections: '500' }

/**
 * Creates a database for the tests of this file, which is dropped after them. Without PostgreSQL,
 * what it returns leads nowhere: the tests are skipped.
 */
export async function openDatabase(): Promise<TestDatabase> {
  let schemas = 0
  const newSchema = (): string => `s${(schemas += 1)}`
  if (noPostgres !== undefined)
    return { connection: connectionTo(0), pool: new pg.Pool(), newSchema }
  const { connection, drop } = await createDatabase()
  const pool = poolTo(connection, { max: 40 })
  after(async () => {
    await pool.end()
    await drop()
  })
  return { connection, pool, newSchema }
}

let databases = 0

/** Creates a database on the server of this run, which the caller drops. */
export async function createDatabase(): Promise<{
  readonly connection: Connection
  readonly drop: () => Promise<void>
}> {
  const shared = await sharedService<Connection>('postgres')
  const own = shared === undefined ? await startPostgres(SHARED_SETTINGS) : undefined
  const server = (shared ?? own?.connection)!
  const database = `test_${process.pid}_${(databases += 1)}`
  await query(server, `CREATE DATABASE ${database}`)
  return {
    connection: { ...server, database },
    async drop() {
      await query(server, `DROP DATABASE ${database} WITH (FORCE)`)
      await own?.remove()
    },
  }
}

async function query(connection: Connection, text: string): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  await client.query(text)
  await client.end()
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
