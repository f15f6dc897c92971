// One contender in its own process: repeats a task for a given time on request.
import { readFileSync, writeFileSync } from 'node:fs'
import { request as httpRequest, Agent } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest, Agent as HttpsAgent } from 'node:https'
import { gunzipSync } from 'node:zlib'
import { blockingContenders } from './blocking-contenders.mjs'
import { handWritten } from './hand-written.mjs'
import { peer } from './peer.mjs'

const [name, portsText] = process.argv.slice(2)
const ports = JSON.parse(portsText)
const urls = {
  get: `http://127.0.0.1:${ports.bareHttp}/`,
  post: `http://127.0.0.1:${ports.http}/`,
  gzip: `http://127.0.0.1:${ports.http}/gzip`,
  down: `http://127.0.0.1:${ports.http}/stream`,
  https: `https://localhost:${ports.bareHttps}/`,
  http2: `https://localhost:${ports.bareHttp2}/`,
  blocking: `http://127.0.0.1:${ports.bareHttp}/`,
}
const megabyte = Buffer.alloc(1024 * 1024, 'x')

const contenders = {
  async 'runwright AsyncClient'() {
    const { AsyncClient } = await import(process.env.RUNWRIGHT_HTTP)
    // Options have their defaults, except for the certificate of the server, which is our own.
    const client = new AsyncClient({ verify: false })
    const h2 = new AsyncClient({ verify: false, http2: true })
    return {
      get: async (url) => (await client.get(url)).json(),
      h2: async (url) => (await h2.get(url)).json(),
      post: async (url) => (await client.post(url, { content: megabyte })).json(),
      async down(url) {
        let n = 0
        for await (const chunk of (await client.stream('GET', url)).iterBytes()) n += chunk.length
        return n
      },
    }
  },
  async 'node:http'() {
    const agents = {
      'http:': new Agent({ keepAlive: true }),
      'https:': new HttpsAgent({ keepAlive: true, rejectUnauthorized: false }),
    }
    const send = (url, body, collect) =>
      new Promise((resolve, reject) => {
        const target = new URL(url)
        const options = {
          agent: agents[target.protocol],
          method: body ? 'POST' : 'GET',
          headers: body ? { 'content-length': body.length } : {},
        }
        const request = (target.protocol === 'https:' ? httpsRequest : httpRequest)(
          target,
          options,
          (response) => {
            if (!collect) {
              let n = 0
              response.on('data', (chunk) => (n += chunk.length))
              response.on('end', () => resolve(n))
              return
            }
            const chunks = []
            response.on('data', (chunk) => chunks.push(chunk))
            response.on('end', () => {
              const all = Buffer.concat(chunks)
              resolve(
                JSON.parse(
                  (response.headers['content-encoding'] ? gunzipSync(all) : all).toString(),
                ),
              )
            })
          },
        )
        request.on('error', reject)
        request.end(body)
      })
    let session
    return {
      get: (url) => send(url, null, true),
      post: (url) => send(url, megabyte, true),
      down: (url) => send(url, null, false),
      h2: (url) =>
        new Promise((resolve, reject) => {
          session ??= connectHttp2(new URL(url).origin, { rejectUnauthorized: false })
          const stream = session.request({ ':path': new URL(url).pathname })
          const chunks = []
          stream.on('data', (chunk) => chunks.push(chunk))
          stream.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString())))
          stream.on('error', reject)
          stream.end()
        }),
    }
  },
  'hand-written codec': async () => handWritten(),
  async 'undici.request'() {
    const { request, Agent: Pool } = await peer('undici')
    const connect = { rejectUnauthorized: false }
    const dispatcher = new Pool({ connect, connections: 256 })
    const h2 = new Pool({ connect, allowH2: true, connections: 1, pipelining: 100 })
    const read = async (response) => {
      const all = Buffer.from(await response.body.arrayBuffer())
      return JSON.parse((response.headers['content-encoding'] ? gunzipSync(all) : all).toString())
    }
    return {
      get: async (url) => read(await request(url, { dispatcher })),
      h2: async (url) => read(await request(url, { dispatcher: h2 })),
      post: async (url) => read(await request(url, { dispatcher, method: 'POST', body: megabyte })),
      async down(url) {
        let n = 0
        for await (const chunk of (await request(url, { dispatcher })).body) n += chunk.length
        return n
      },
    }
  },
  async 'global fetch'() {
    return {
      get: async (url) => (await fetch(url)).json(),
      post: async (url) => (await fetch(url, { method: 'POST', body: megabyte })).json(),
      async down(url) {
        let n = 0
        for await (const chunk of (await fetch(url)).body) n += chunk.length
        return n
      },
    }
  },
  async got() {
    const got = (await peer('got')).default
    const agent = {
      http: new Agent({ keepAlive: true }),
      https: new HttpsAgent({ keepAlive: true }),
    }
    const options = { agent, https: { rejectUnauthorized: false }, retry: { limit: 0 } }
    return {
      get: (url) => got(url, options).json(),
      post: (url) => got.post(url, { ...options, body: megabyte }).json(),
      async down(url) {
        let n = 0
        for await (const chunk of got.stream(url, options)) n += chunk.length
        return n
      },
    }
  },
  async axios() {
    const axios = (await peer('axios')).default
    const options = {
      httpAgent: new Agent({ keepAlive: true }),
      httpsAgent: new HttpsAgent({ keepAlive: true, rejectUnauthorized: false }),
      maxBodyLength: Infinity,
    }
    return {
      get: async (url) => (await axios.get(url, options)).data,
      post: async (url) => (await axios.post(url, megabyte, options)).data,
      async down(url) {
        let n = 0
        for await (const chunk of (await axios.get(url, { ...options, responseType: 'stream' }))
          .data)
          n += chunk.length
        return n
      },
    }
  },
  async ky() {
    const ky = (await peer('ky')).default
    return {
      get: (url) => ky(url, { retry: 0 }).json(),
      post: (url) => ky.post(url, { body: megabyte, retry: 0 }).json(),
    }
  },
}
const node = contenders['node:http']
const all = { ...contenders, 'node:https': node, 'node:http2': node, ...blockingContenders }

const client = await all[name]().catch((error) => ({
  failure: String(error.message).split('\n')[0],
}))
const tasks = {
  get: () => client.get(urls.get),
  post: () => client.post(urls.post),
  gzip: () => client.get(urls.gzip),
  down: () => client.down(urls.down),
  https: () => client.get(urls.https),
  http2: () => client.h2(urls.http2),
  blocking: () => client.sync(urls.blocking),
}

/** A field of /proc/self/status in MB; NaN where the file does not exist. */
function memory(field) {
  try {
    const text = readFileSync('/proc/self/status', 'latin1')
    return (Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(text)[1]) * 1024) / 1e6
  } catch {
    return NaN
  }
}

/** Resets the peak resident set size to the current size (proc(5), clear_refs). */
function forgetPeak() {
  try {
    writeFileSync('/proc/self/clear_refs', '5')
  } catch {
    // Growth then counts from the highest peak so far.
  }
}

/** How long requests are in flight before they count: all begin at once, and may open connections. */
const RAMP_MS = 150

/** The steady state of `flights` requests at a time. */
async function measureFlights(once, flights, ms) {
  let begun = null
  let result = null
  let count = 0
  const begin = performance.now() + RAMP_MS
  const lane = async () => {
    while (result === null) {
      await once()
      const now = performance.now()
      if (begun !== null) count++
      else if (now >= begin) begun = { at: now, cpu: process.cpuUsage() }
      if (begun !== null && result === null && now >= begun.at + ms) {
        const { user, system } = process.cpuUsage(begun.cpu)
        result = { us: ((now - begun.at) * 1000) / count, cpu: (user + system) / count, grown: 0 }
      }
    }
  }
  await Promise.all(Array.from({ length: flights }, lane))
  return result
}

async function measure({ task, flights, ms, once: single }) {
  const once = tasks[task]
  if (flights > 1) return measureFlights(once, flights, ms)
  if (single) await client.get(urls.get)
  forgetPeak()
  const before = memory('VmRSS')
  const cpu = process.cpuUsage()
  const start = performance.now()
  const end = single ? start : start + ms
  let count = 0
  if (task === 'blocking') {
    do {
      once()
      count++
    } while (performance.now() < end)
  } else {
    do {
      await once()
      count++
    } while (performance.now() < end)
  }
  const us = ((performance.now() - start) * 1000) / count
  const used = process.cpuUsage(cpu)
  return { us, cpu: (used.user + used.system) / count, grown: memory('VmHWM') - before }
}

process.on('message', async (order) => {
  try {
    if (client.failure !== undefined) throw new Error(client.failure)
    process.send(await measure(order))
  } catch (error) {
    process.send({ error: String(error) })
  }
})
process.on('disconnect', () => process.exit())
process.send('ready')
