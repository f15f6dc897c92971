import crypto from 'node:crypto'
import zlib from 'node:zlib'

/*
 * Functions that Node has had since 20.12 and 20.15. A module that imports one of them by its name
 * is a SyntaxError on an older Node, before anything can say which version is needed.
 */

export const hash: typeof crypto.hash = crypto.hash

export const crc32: typeof zlib.crc32 = zlib.crc32
