/** The blocking client: calls return responses, not promises. The server runs in a worker. */
import { Worker } from 'node:worker_threads'
import { Client } from 'runwright/http'

const worker = new Worker(
  `require('node:http')
    .createServer((request, response) => {
      let bytes = 0
      request.on('data', (chunk) => (bytes += chunk.length))
      request.on('end', () => response.end(request.method + ' ' + bytes))
    })
    .listen(0, '127.0.0.1', function () {
      require('node:worker_threads').parentPort.postMessage(this.address().port)
    })`,
  { eval: true },
)
const port = await new Promise<number>((resolve) => worker.once('message', resolve))

{
  using client = new Client({ baseUrl: `http://127.0.0.1:${port}`, timeout: 5_000 })
  console.log(client.get('/').text)
  function* upload(): Generator<string> {
    for (let i = 0; i < 3; i++) yield 'chunk'
  }
  console.log(client.post('/', { content: upload() }).text)
}
await worker.terminate()
