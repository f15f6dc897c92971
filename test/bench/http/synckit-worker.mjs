// What synckit runs on its worker thread: a GET by undici.
import { peer } from './peer.mjs'

const { runAsWorker } = await peer('synckit')
const { request } = await peer('undici')
runAsWorker(async (url) => (await request(url)).body.text())
