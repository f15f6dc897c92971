import * as zlib from 'node:zlib'

export const newer = zlib as unknown as { zstdCompressSync?: (text: string) => Uint8Array }
export const zstd: boolean = newer.zstdCompressSync !== undefined
