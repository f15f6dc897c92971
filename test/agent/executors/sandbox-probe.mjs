/**
 * Runs in a sandbox: lists what can be written there, as JSON on standard output. It opens files
 * for writing and closes them again, without a byte: in a sandbox with a hole they are the host's.
 * In folders it makes a file, which the test removes if it is on the host.
 *
 * Environment: PROBE is a name for files that it creates, HOST_PID a process outside.
 */
import { spawnSync } from 'node:child_process'
import {
  closeSync, constants, lstatSync, openSync, readdirSync, readFileSync, statSync, writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

const PROBE = process.env['PROBE'] ?? ''
const HOST_PID = Number(process.env['HOST_PID'])

/** Mount points with their options: `[path, isReadOnly, options]`. */
const mounts = readFileSync('/proc/self/mountinfo', 'latin1').trim().split('\n').map((line) => {
  const fields = line.split(' ')
  const options = (fields[5] ?? '').split(',')
  return { path: (fields[4] ?? '').replaceAll('\\040', ' '), options }
})

/** Below these only the flags of the mount are looked at: they hold very many files. */
const bulk = new Set(
  mounts
    .filter(({ path, options }) => options.includes('ro') && !/^\/(proc|dev|$)/.test(path))
    .map(({ path }) => path),
)

/** @type {string[]} */
const written = []

/** @param {string} folder */
function walk(folder) {
  /** @type {import('node:fs').Dirent[]} */
  let entries = []
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch {
    // Not even readable.
  }
  // A folder is writable when a file can be made in it.
  const made = join(folder, PROBE)
  if (attempt(() => writeFileSync(made, 'probe', { flag: 'wx' }))) written.push(folder)
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (bulk.has(path) || entry.isSymbolicLink()) continue
    // Other processes here are the same: the shell that started this one, and bubblewrap.
    if (folder === '/proc' && /^\d+$/.test(entry.name) && entry.name !== String(process.pid))
      continue
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) walk(path)
    else if (attempt(() => closeSync(openSync(path, FOR_WRITING)))) written.push(path)
  }
}

const FOR_WRITING = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/** @param {() => unknown} action */
function attempt(action) {
  try {
    action()
    return true
  } catch {
    return false
  }
}

/** Folders that processes in the sandbox have open: their parents may be the host's. */
const openFolders = readdirSync('/proc').flatMap((id) => {
  /** @type {string[]} */
  let names = []
  attempt(() => (names = readdirSync(`/proc/${id}/fd`)))
  const paths = /^\d+$/.test(id) ? names.map((name) => `/proc/${id}/fd/${name}`) : []
  return paths.filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory())
})

/** @param {string} command */
const succeeds = (command) => spawnSync('/bin/sh', ['-c', command]).status === 0

/** @param {string} path */
const connects = (path) =>
  new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

walk('/')
const status = readFileSync('/proc/self/status', 'latin1')
const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
const escapes = {
  'a device node': succeeds(`mknod /tmp/${PROBE}-disk b 254 0`),
  'a user namespace': succeeds('unshare --user true'),
  'a mount': succeeds('mount -t tmpfs none /tmp'),
  'a writable /proc': succeeds('mount -o remount,rw /proc'),
  'a writable /': succeeds('mount -o remount,rw /'),
  'what is below a mount': succeeds('umount /proc'),
  'a signal to the host': attempt(() => process.kill(HOST_PID, 0)),
  'a process of the host': pids.includes(String(HOST_PID)),
  'a folder of the host': openFolders.length > 0,
  'a terminal': attempt(() => closeSync(openSync('/dev/tty', constants.O_RDWR))),
  'an abstract socket of the host': await connects(`\0${PROBE}`),
  'a capability': /^Cap(Prm|Eff|Inh|Amb):\s*0*[1-9a-f]/m.test(status),
  'new privileges': !/^NoNewPrivs:\s*1$/m.test(status),
}
console.log(
  JSON.stringify({
    written,
    writableMounts: mounts.filter(({ options }) => !options.includes('ro')).map(({ path }) => path),
    setuidMounts: mounts.filter(({ options }) => !options.includes('nosuid')).map((m) => m.path),
    escapes: Object.entries(escapes).filter(([, done]) => done).map(([name]) => name),
    readable: ['kcore', 'keys', 'key-users', 'timer_list', 'kmsg'].filter((name) =>
      attempt(() => readFileSync(`/proc/${name}`).subarray(0, 1)),
    ),
  }),
)
