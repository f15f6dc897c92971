// A fresh process that reports when it has imported a contender, or has its first response:
// `fresh.mjs CONTENDER (import|first answer) PORTS`.
import { peer } from './peer.mjs'

const [name, what, ports] = process.argv.slice(2)
const url = `http://127.0.0.1:${JSON.parse(ports).bareHttp}/`
const report = (message) =>
  process.send({ at: performance.timeOrigin + performance.now(), ...message }, () => process.exit())

/** Each loads a contender and returns a function that makes its first request. */
const contenders = {
  'bare node': async () => () => {},
  async 'node:http'() {
    const { get } = await import('node:http')
    return () =>
      new Promise((resolve, reject) => {
        get(url, (response) => {
          let text = ''
          response.on('data', (chunk) => (text += chunk))
          response.on('end', () => resolve(JSON.parse(text)))
        }).on('error', reject)
      })
  },
  async 'runwright AsyncClient'() {
    const { AsyncClient } = await import(process.env.RUNWRIGHT_HTTP)
    return async () => (await new AsyncClient().get(url)).json()
  },
  async 'runwright Client'() {
    const { Client } = await import(process.env.RUNWRIGHT_HTTP)
    return () => new Client().get(url).json()
  },
  async 'undici.request'() {
    const { request } = await peer('undici')
    return async () => (await request(url)).body.json()
  },
  'global fetch': async () => async () => (await fetch(url)).json(),
  async got() {
    const { default: got } = await peer('got')
    return () => got(url).json()
  },
  async axios() {
    const { default: axios } = await peer('axios')
    return async () => (await axios.get(url)).data
  },
  async ky() {
    const { default: ky } = await peer('ky')
    return () => ky(url).json()
  },
  async 'synckit + undici'() {
    const { createSyncFn } = await peer('synckit')
    const get = createSyncFn(new URL('./synckit-worker.mjs', import.meta.url))
    return () => JSON.parse(get(url))
  },
  async 'sync-fetch'() {
    const { default: fetchSync } = await peer('sync-fetch')
    return () => fetchSync(url).json()
  },
}

try {
  const first = await contenders[name]()
  if (what === 'first answer') await first()
  report({})
} catch (error) {
  report({ error: String(error) })
}
