// The blocking contenders: each makes a `sync(url)` that returns parsed JSON.
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { peer } from './peer.mjs'

async function runwrightClient() {
  const { Client } = await import(process.env.RUNWRIGHT_HTTP)
  const client = new Client({ timeout: 30_000 })
  return { sync: (url) => client.get(url).json() }
}

/** The floor: a worker with node:http, and nothing else. */
async function bareWorker() {
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
          const body = new Uint8Array(Buffer.concat(chunks))
          port.postMessage({ status: response.statusCode, headers: response.rawHeaders, body })
          Atomics.add(control, 0, 1)
          Atomics.notify(control, 0)
        })
      }).end()
    })`
  new Worker(code, {
    eval: true,
    workerData: { port: port2, control },
    transferList: [port2],
  }).unref()
  return {
    sync(url) {
      const seen = Atomics.load(control, 0)
      port1.postMessage(url)
      Atomics.wait(control, 0, seen)
      return JSON.parse(Buffer.from(receiveMessageOnPort(port1).message.body).toString())
    },
  }
}

export const blockingContenders = {
  'worker + node:http': bareWorker,
  'runwright Client': runwrightClient,
  async 'runwright Client, no spin'() {
    // The client spins only if there is a second core for the worker.
    os.availableParallelism = () => 1
    syncBuiltinESMExports()
    return runwrightClient()
  },
  async 'synckit + undici'() {
    const { createSyncFn } = await peer('synckit')
    const get = createSyncFn(new URL('./synckit-worker.mjs', import.meta.url))
    return { sync: (url) => JSON.parse(get(url)) }
  },
  async 'sync-fetch'() {
    const fetchSync = (await peer('sync-fetch')).default
    return { sync: (url) => fetchSync(url).json() }
  },
}
