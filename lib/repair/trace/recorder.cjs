/**
 * Records in each Node process which code of a project runs, with the limits in `settings.json`,
 * which `trace.ts` writes beside it. NODE_OPTIONS loads it, so it also reaches test runners behind
 * npm or a shell, the programs that tests start, and worker threads. Its records are lines of JSON,
 * described in `records.ts`.
 *
 * 1. V8 itself counts what runs. The counts are taken where a test begins and ends, which resets
 *    them; what runs elsewhere (loading, hooks of suites) belongs to no test.
 * 2. Where tests overlap in time, what runs belongs to all that are open, but not to a test that
 *    has an open subtest.
 * 3. Taking costs about a millisecond, more where much code is loaded. A test before which the
 *    process was busy for less than that takes over what ran since the test before. When
 *    `MAX_NANOSECONDS` were spent, the tests that follow are recorded as one.
 * 4. Every record is written at once and synchronously: a process may be killed.
 * 5. Where somebody else counts with V8 (c8, a runner's own coverage), taking would spoil those
 *    counts, so nothing is recorded.
 * 6. V8 tells positions in the code that it was given. The text goes along: of files that loaders
 *    compile it is caught on the way, or Node knows their source map; others are read from disk.
 *
 * Nothing here may throw into the project, print, or keep the process alive. Functions that tests
 * often replace are kept from the beginning.
 */
'use strict'
const { closeSync, openSync, readFileSync, realpathSync, statSync, writeSync } = require('node:fs')
const Module = require('node:module')
const { dirname, relative, resolve, sep } = require('node:path')
const { fileURLToPath } = require('node:url')
const workers = require('node:worker_threads')
const HERE = __dirname
const {
  ROOTS, MAX_BYTES, MAX_SOURCE_BYTES, MAX_TESTS, MAX_NANOSECONDS,
} = require('./settings.json')
const MAX_SCRIPTS = 5000
const MAX_KNOWN = 100000
const MAX_PENDING = 1 << 20
/** What runs between two tests in no more time belongs to the second one. */
const GAP_NANOSECONDS = 1e6
const MANAGERS = /[\\/](npm|npx|yarn|pnpm|corepack)[\\/](bin|lib|dist)[\\/]/
const { stringify } = JSON
const { apply, defineProperty } = Reflect
const { bigint: ticks } = process.hrtime
const later = process.nextTick
const now = () => Number(ticks())
const { cpuUsage } = process
/** Time in which this process ran, however many others do. */
const busy = () => {
  const { user, system } = cpuUsage()
  return (user + system) * 1000
}

const real = (path) => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
/** The path of a file of the project from its root; null for any other. */
const ours = (path) => {
  for (const root of ROOTS) {
    if (!path.startsWith(root + sep)) continue
    const name = path.slice(root.length + 1)
    return name.includes('node_modules' + sep) ? null : name.split(sep).join('/')
  }
  return null
}
const pathOf = (url) => {
  if (!url.startsWith('file:')) return url
  try {
    return fileURLToPath(url.replace(/[?#].*$/s, ''))
  } catch {
    return ''
  }
}

const mainOf = () => (typeof process.argv[1] === 'string' ? real(resolve(process.argv[1])) : '')
let Session = null
try {
  ;({ Session } = require('node:inspector'))
} catch {
  // Node may be built without it.
}
const counts = process.env.NODE_V8_COVERAGE || hasOption('--experimental-test-coverage')
if (Session !== null && !counts && !MANAGERS.test(mainOf())) {
  try {
    record()
  } catch {
    // Without a trace.
  }
}

function hasOption(name) {
  return process.execArgv.includes(name) || (process.env.NODE_OPTIONS ?? '').includes(name)
}

function record() {
  const session = new Session()
  let alone = true
  const { post } = Session.prototype
  const send = (method, params) => {
    let found
    apply(post, session, [method, params, (error, result) => (found = error ? undefined : result)])
    return found
  }
  session.connect()
  send('Profiler.enable')
  send('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  const watched = function (...rest) {
    if (typeof rest[0] === 'string' && /^Profiler\..*Precise/.test(rest[0])) alone = false
    return apply(post, this, rest)
  }
  defineProperty(watched, 'name', { value: 'post' })
  defineProperty(Session.prototype, 'post', { value: watched, writable: true, configurable: true })

  let fd = null
  let written = 0
  let pending = ''
  const started = now()
  const entry = () => {
    const main = mainOf()
    return ours(main) ?? main
  }
  const write = (...line) => {
    if (written > MAX_BYTES) return
    pending += stringify(line) + '\n'
    if (pending.length > MAX_PENDING) pending = ''
    try {
      let text = pending
      if (fd === null) {
        const name = 'trace-' + ticks() + '-' + process.pid + '-' + workers.threadId + '.jsonl'
        fd = openSync(HERE + '/' + name, 'ax', 0o600)
        const header = ['p', process.pid, process.ppid, workers.threadId, started, entry()]
        text = stringify(header) + '\n' + text
      }
      written += Buffer.byteLength(text)
      if (written <= MAX_BYTES) writeSync(fd, text)
      pending = ''
    } catch {
      // A test that imitates a file system hides this one for a while.
    }
  }

  /** Texts that loaders made, by path. */
  const made = new Map()
  const scripts = new Map()
  const sources = new Map()
  const known = new Map()
  let knowns = 0
  const hold = (text, extra) => {
    const size = Buffer.byteLength(text)
    if (size > MAX_SOURCE_BYTES) return null
    const { createHash } = require('node:crypto')
    const name = createHash('sha256').update(text).update(extra).digest('hex')
    if (sources.has(name)) return name
    sources.set(name, true)
    try {
      const file = openSync(HERE + '/sources/' + name, 'wx', 0o600)
      try {
        writeSync(file, extra + '\n' + text)
      } finally {
        closeSync(file)
      }
    } catch {
      // Another process has written it.
    }
    return name
  }

  /** The text of a script of which the whole is this long; null when it cannot be had. */
  const sourceOf = (url, path, length) => {
    const text = made.get(path)
    if (text !== undefined) return text.length === length ? hold(text, '') : null
    const map = Module.findSourceMap?.(url) ?? Module.findSourceMap?.(path)
    if (map?.payload !== undefined && Array.isArray(map.lineLengths)) {
      const { mappings, sources, sourceRoot } = map.payload
      return hold('', stringify({ lengths: map.lineLengths, mappings, sources, sourceRoot }))
    }
    const { size } = statSync(path)
    if (size > MAX_SOURCE_BYTES) return null
    const read = readFileSync(path, 'utf8').replace(/^\ufeff/, '')
    if (read.length === length) return hold(read, '')
    // Node takes types off so that positions stay, and adds a line with the URL.
    const added = length - read.length
    const stripped = Boolean(process.features.typescript) && /\.[mc]?ts$/.test(path)
    return stripped && added >= 0 && added < url.length + 40 ? hold(read, '') : null
  }

  const scriptOf = ({ scriptId, url, functions }) => {
    let script = scripts.get(scriptId)
    if (script !== undefined) return script
    script = null
    try {
      const path = pathOf(url)
      const name = ours(path) ?? ours(real(path))
      const all = functions[0].ranges[0]
      if (name !== null && scripts.size < MAX_SCRIPTS && all.startOffset === 0) {
        const source = sourceOf(url, path, all.endOffset)
        if (source !== null) {
          script = scripts.size
          write('s', script, name, source)
        }
      }
    } catch {
      // Not on the disk.
    }
    scripts.set(scriptId, script)
    return script
  }

  let spent = 0
  let tests = 0
  let loads = 0
  let ended = -Infinity
  const open = new Map()
  /** Tests that have no open subtest. */
  const leaves = () => {
    const parents = new Set()
    for (const { parent } of open.values()) if (parent !== undefined) parents.add(parent)
    const found = []
    for (const [key, { index }] of open) if (!parents.has(key)) found.push(index)
    return found
  }

  const isOurs = new Map()
  const isKnownUrl = (url) => {
    let is = isOurs.get(url)
    if (is === undefined) {
      const path = pathOf(url)
      is = path.startsWith(sep) && !path.startsWith(HERE)
      is = is && (ours(path) ?? ours(real(path))) !== null
      if (isOurs.size < MAX_KNOWN) isOurs.set(url, is)
    }
    return is
  }

  const take = (owners) => {
    if (!alone) return
    const from = busy()
    try {
      const { result = [] } = send('Profiler.takePreciseCoverage') ?? {}
      const ids = []
      for (const each of result) {
        if (!isKnownUrl(each.url)) continue
        const script = scriptOf(each)
        if (script === null) continue
        const flat = []
        for (const { ranges } of each.functions) {
          for (const { startOffset, endOffset, count } of ranges) {
            flat.push(startOffset, endOffset, count > 0 ? 1 : 0)
          }
        }
        const key = script + ':' + flat.join()
        let id = known.get(key)
        if (id === undefined) {
          id = knowns++
          if (known.size < MAX_KNOWN && key.length < 100000) known.set(key, id)
          write('r', id, script, flat)
        }
        ids.push(id)
      }
      if (ids.length > 0) write('c', owners, ids)
    } catch {
      // The session was closed, or somebody else counts.
    }
    spent += busy() - from
  }

  const coarse = () => spent > MAX_NANOSECONDS || tests >= MAX_TESTS
  let rest = null
  /** The last test that began, in the same turn. */
  let fresh = null
  const begin = (key, name, parent) => {
    try {
      if (!alone || open.has(key)) return
      if (coarse()) {
        if (rest === null) {
          if (open.size === 0) take([])
          rest = tests++
          write('t', rest, '(other tests)', now())
        }
        return
      }
      // Nothing else ran since then but what the test before ran before it first waited.
      if (fresh !== null && open.size > 0) take([fresh])
      else if (open.size > 0 || loads > 0 || busy() - ended > GAP_NANOSECONDS) take(leaves())
      loads = 0
      const index = tests++
      open.set(key, { index, parent })
      write('t', index, String(name), now())
      fresh = index
      later(() => {
        fresh = null
      })
    } catch {
      // Without it.
    }
  }
  /** Ends what is counted for a test; its outcome may be settled a little later. */
  const close = (key) => {
    try {
      const test = open.get(key)
      if (test === undefined) return null
      if (rest === null) take(leaves())
      open.delete(key)
      fresh = null
      ended = busy()
      return { index: test.index, at: now() }
    } catch {
      return null
    }
  }
  const settle = (closed, failed) => {
    if (closed !== null) write('e', closed.index, failed ?? null, closed.at)
  }
  const end = (key, failed) => settle(close(key), failed)
  const flush = (code) => {
    try {
      const owners = rest === null ? leaves() : [rest]
      take(owners)
      for (const { index } of open.values()) write('e', index, null, now())
      open.clear()
      const known = workers.isMainThread && typeof code === 'number'
      if (fd !== null) write('x', known ? code : null, now())
    } catch {
      // Without it.
    }
  }

  process.on('exit', flush)
  const { reallyExit } = process
  process.reallyExit = function (code) {
    flush(code)
    return apply(reallyExit, this, [code])
  }

  const fileName = (path) => {
    if (typeof path !== 'string' || path === '') return entry()
    return ours(pathOf(path)) ?? ours(real(pathOf(path))) ?? path
  }
  /** The name of a test, as in reports: its file, its suites and its title. */
  const nameOf = (path, titles) => [fileName(path), ...titles].join(' > ')
  const hook = () => {
    require('./runners.cjs').hook({
      main: mainOf(),
      begin,
      close,
      settle,
      end,
      nameOf,
      later,
      loaded: () => loads++,
      isOurs: (path) => (ours(path) ?? ours(real(path))) !== null,
      made: (path, text) => {
        if (made.size < MAX_SCRIPTS && text.length <= MAX_SOURCE_BYTES) made.set(path, text)
      },
    })
  }
  // A thread gets to know its script only then.
  if (workers.isMainThread) hook()
  else later(hook)
}
