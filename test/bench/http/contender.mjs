// One contender in a process of its own: measures a scenario for a while when it is told to.
import { createRequire } from 'node:module'
import { request as httpRequest, Agent } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest, Agent as HttpsAgent } from 'node:https'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'

const [name, portsText] = process.argv.slice(2)
const ports = JSON.parse(portsText)
const base = {
  bare: `http://127.0.0.1:${ports.bareHttp}`,
  http: `http://127.0.0.1:${ports.http}`,
  https: `https://localhost:${ports.https}`,
  http2: `https://localhost:${ports.http2}`,
}
const megabyte = Buffer.alloc(1024 * 1024, 'x')
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
process.removeAllListeners('warning')

/** @returns {Promise<any>} a package of test/peers */
const peer = (specifier) => {
  const require = createRequire(new URL('../../peers/package.json', import.meta.url))
  return import(pathToFileURL(require.resolve(specifier)).href)
}

const contenders = {
  async 'runwright AsyncClient'() {
    const { AsyncClient } = await import(process.env.RUNWRIGHT_HTTP)
    const client = new AsyncClient({ verify: false, limits: { maxConnections: 256, maxKeepaliveConnections: 256 }, timeout: 30_000 })
    const h2 = new AsyncClient({ verify: false, http2: true, timeout: 30_000 })
    return {
      get: async (url) => (await client.get(url)).json(),
      h2: async (url) => (await h2.get(url)).json(),
      post: async (url) => (await client.post(url, { content: megabyte })).json(),
      async stream(url) {
        let n = 0
        for await (const chunk of (await client.stream('GET', url)).iterBytes()) n += chunk.length
        return n
      },
    }
  },
  async 'node:http'() {
    const agents = { 'http:': new Agent({ keepAlive: true }), 'https:': new HttpsAgent({ keepAlive: true, rejectUnauthorized: false }) }
    const send = (url, body, collect) =>
      new Promise((resolve, reject) => {
        const target = new URL(url)
        const options = { agent: agents[target.protocol], method: body ? 'POST' : 'GET', headers: body ? { 'content-length': body.length } : {} }
        const request = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, options, (response) => {
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
            resolve(JSON.parse((response.headers['content-encoding'] ? gunzipSync(all) : all).toString()))
          })
        })
        request.on('error', reject)
        request.end(body)
      })
    let session
    return {
      get: (url) => send(url, null, true),
      post: (url) => send(url, megabyte, true),
      stream: (url) => send(url, null, false),
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
      async stream(url) {
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
      async stream(url) {
        let n = 0
        for await (const chunk of (await fetch(url)).body) n += chunk.length
        return n
      },
    }
  },
  async got() {
    const got = (await peer('got')).default
    const agent = { http: new Agent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) }
    const options = { agent, https: { rejectUnauthorized: false }, retry: { limit: 0 } }
    return {
      get: (url) => got(url, options).json(),
      post: (url) => got.post(url, { ...options, body: megabyte }).json(),
      async stream(url) {
        let n = 0
        for await (const chunk of got.stream(url, options)) n += chunk.length
        return n
      },
    }
  },
  async axios() {
    const axios = (await peer('axios')).default
    const options = { httpAgent: new Agent({ keepAlive: true }), httpsAgent: new HttpsAgent({ keepAlive: true, rejectUnauthorized: false }), maxBodyLength: Infinity }
    return {
      get: async (url) => (await axios.get(url, options)).data,
      post: async (url) => (await axios.post(url, megabyte, options)).data,
      async stream(url) {
        let n = 0
        for await (const chunk of (await axios.get(url, { ...options, responseType: 'stream' })).data) n += chunk.length
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
  async 'runwright Client'() {
    const { Client } = await import(process.env.RUNWRIGHT_HTTP)
    const client = new Client({ timeout: 30_000 })
    return { sync: (url) => client.get(url).json() }
  },
  async 'worker + node:http'() {
    const { port1, port2 } = new MessageChannel()
    const control = new Int32Array(new SharedArrayBuffer(4))
    const code = `
      const { workerData: { port, control } } = require('node:worker_threads')
      const { request, Agent } = require('node:http')
      const agent = new Agent({ keepAlive: true })
      port.on('message', (url) => {
        request(url, { agent }, (response) => {
          const chunks = []
          response.on('data', (chunk) => chunks.push(chunk))
          response.on('end', () => {
            port.postMessage({ status: response.statusCode, headers: response.rawHeaders, body: new Uint8Array(Buffer.concat(chunks)) })
            Atomics.add(control, 0, 1)
            Atomics.notify(control, 0)
          })
        }).end()
      })`
    new Worker(code, { eval: true, workerData: { port: port2, control }, transferList: [port2] }).unref()
    return {
      sync(url) {
        const seen = Atomics.load(control, 0)
        port1.postMessage(url)
        Atomics.wait(control, 0, seen)
        return JSON.parse(Buffer.from(receiveMessageOnPort(port1).message.body).toString())
      },
    }
  },
  async 'sync-fetch'() {
    const fetchSync = (await peer('sync-fetch')).default
    return { sync: (url) => fetchSync(url).json() }
  },
}

const client = await contenders[name]().catch((error) => ({ failure: String(error.message).split('\n')[0] }))
const scenarios = {
  sequential: () => client.get(`${base.bare}/`),
  '64 in flight': () => client.get(`${base.bare}/`),
  'POST 1 MB': () => client.post(`${base.http}/`),
  'gzip JSON': () => client.get(`${base.http}/gzip`),
  '100 MB stream': () => client.stream(`${base.http}/stream`),
  HTTPS: () => client.get(`${base.https}/`),
  'HTTP/2': () => client.h2(`${base.http2}/`),
  'HTTP/2, 64 in flight': () => client.h2(`${base.http2}/`),
  blocking: () => client.sync(`${base.bare}/`),
}

async function measure(scenario, ms) {
  const once = scenarios[scenario]
  const flights = scenario.endsWith('64 in flight') ? 64 : 1
  let count = 0
  const rss = process.memoryUsage.rss()
  let most = rss
  const cpu = process.cpuUsage()
  const start = performance.now()
  const end = start + ms
  if (scenario === 'blocking') {
    while (performance.now() < end) {
      once()
      count++
    }
  } else {
    const lane = async () => {
      do {
        await once()
        count++
        most = Math.max(most, process.memoryUsage.rss())
      } while (performance.now() < end)
    }
    await Promise.all(Array.from({ length: flights }, lane))
  }
  const us = ((performance.now() - start) * 1000) / count
  const used = process.cpuUsage(cpu)
  return { us, cpu: (used.user + used.system) / count, rss: (most - rss) / 1e6 }
}

const offers = (scenario) => {
  if (scenario === 'blocking') return client.sync !== undefined
  if (scenario.startsWith('HTTP/2')) return client.h2 !== undefined
  if (scenario === '100 MB stream') return client.stream !== undefined
  return client.get !== undefined
}

process.on('message', async ({ scenario, ms }) => {
  try {
    if (client.failure !== undefined) throw new Error(client.failure)
    process.send(offers(scenario) ? await measure(scenario, ms) : null)
  } catch (error) {
    process.send({ error: String(error) })
  }
})
process.on('disconnect', () => process.exit())
process.send('ready')
