import buffer from 'node:buffer'

/** The content as text; null when it is not UTF-8 text. */
export function decodeText(content: Uint8Array): string | null {
  if (content.includes(0) || !buffer.isUtf8(content)) return null
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('utf8')
}

/** Quotes a file name with control characters, so that it cannot break its header line. */
export function oneLine(name: string): string {
  return /[\u0000-\u001f\u007f]/.test(name) ? JSON.stringify(name) : name
}
