/** Names of files as text, see `file-names.ts`. */
export { bytesOfName, nameOfBytes } from '../../internal/file-names.js'
