import { SseParser, type AsyncClient, type AsyncResponse } from '../../http/index.js'
import { answerError } from './answer-error.js'
import type { EventStream, OpenStream } from './follow.js'

/** Opens streams of server-sent events at `path`. */
export function sseStreams(http: AsyncClient, path: string): OpenStream {
  return async (params, signal, silenceMs) => {
    const response = await http.stream('GET', path, {
      params,
      headers: { Accept: 'text/event-stream', 'Cache-Control': 'no-store' },
      timeout: { read: silenceMs },
      signal,
    })
    try {
      const type = response.headers.get('content-type') ?? ''
      if (response.statusCode === 200 && type.startsWith('text/event-stream')) {
        return streamOf(response)
      }
      if (response.statusCode !== 204) throw await answerError(response)
    } catch (error) {
      await response.close()
      throw error
    }
    await response.close()
    return null
  }
}

function streamOf(response: AsyncResponse): EventStream {
  const parser = new SseParser()
  return {
    async *events() {
      for await (const chunk of response.iterBytes()) {
        for (const { data } of parser.feed(chunk)) yield data
      }
      return false
    },
    get position() {
      const id = parser.lastEventId
      return /^\d{1,15}$/.test(id) ? Number(id) : 0
    },
    close: () => response.close(),
  }
}
