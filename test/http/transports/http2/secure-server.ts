import { readFileSync } from 'node:fs'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { fileURLToPath } from 'node:url'
import { listen, type Served } from '../../../helpers/serve.js'

const cert = (name: string): Buffer =>
  readFileSync(fileURLToPath(new URL(`../../../fixtures/http/certs/${name}.pem`, import.meta.url)))
export const verify: { readonly ca: string } = { ca: cert('ca').toString() }

type OnStream = (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void

export function secureServer(onStream: OnStream, settings = {}): Promise<Served> {
  const server = createSecureServer({
    cert: cert('server'),
    key: cert('server-key'),
    allowHTTP1: true,
    settings,
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  server.on('sessionError', () => {})
  return listen(server as never, 'https')
}
