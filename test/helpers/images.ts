/** Images for tests: their headers are real, and what follows is anything. */

/** A PNG of this size in pixels, with so many bytes. */
export function png(width = 2, height = 3, bytes = 64, fill = 7): Buffer {
  const file = Buffer.alloc(bytes, fill)
  file.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
  file.writeUInt32BE(width, 16)
  file.writeUInt32BE(height, 20)
  return file
}

export function gif(width = 2, height = 3): Buffer {
  const file = Buffer.alloc(32, 7)
  file.write('GIF89a', 'latin1')
  file.writeUInt16LE(width, 6)
  file.writeUInt16LE(height, 8)
  return file
}

/** A JPEG whose frame header follows a segment of `skip` bytes. */
export function jpeg(width = 2, height = 3, skip = 100): Buffer {
  const begin = Buffer.alloc(2 + 2 + skip)
  begin.writeUInt32BE(0xffd8ffe1)
  begin.writeUInt16BE(skip, 4)
  const frame = Buffer.from([0xff, 0xc2, 0, 17, 8, 0, 0, 0, 0, 3, 1, 2, 3])
  frame.writeUInt16BE(height, 5)
  frame.writeUInt16BE(width, 7)
  return Buffer.concat([begin, frame])
}

/** A WebP file of one of its three kinds. */
export function webp(kind: 'VP8 ' | 'VP8L' | 'VP8X', width = 2, height = 3): Buffer {
  const file = Buffer.alloc(40, 0)
  file.write('RIFF\x20\0\0\0WEBP', 'latin1')
  file.write(kind, 12, 'latin1')
  if (kind === 'VP8 ') {
    file.writeUInt16LE(width, 26)
    file.writeUInt16LE(height, 28)
  } else if (kind === 'VP8L') {
    file.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21)
  } else {
    file.writeUIntLE(width - 1, 24, 3)
    file.writeUIntLE(height - 1, 27, 3)
  }
  return file
}
