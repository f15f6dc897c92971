import { isUtf8 } from 'node:buffer'

/** The text of a name; a byte that is not UTF-8 becomes the lone surrogate U+DC00 + byte. */
export function nameOfBytes(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString('utf8')
  let name = ''
  for (let i = 0; i < bytes.length; ) {
    let length = 1
    while (length <= 4 && !isUtf8(bytes.subarray(i, i + length))) length += 1
    if (length > 4 || i + length > bytes.length) {
      name += String.fromCharCode(0xdc00 + bytes[i]!)
      i += 1
    } else {
      name += Buffer.from(bytes.subarray(i, i + length)).toString('utf8')
      i += length
    }
  }
  return name
}

/** The bytes of a name. */
export function bytesOfName(name: string): Buffer {
  const parts = Array.from(name, (char) => {
    const code = char.codePointAt(0)!
    return code >= 0xdc80 && code <= 0xdcff ? Buffer.of(code - 0xdc00) : Buffer.from(char)
  })
  return Buffer.concat(parts)
}
