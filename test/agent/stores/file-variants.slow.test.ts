import { testFileStore } from './file-contract.js'
import { INDEX_FILE } from './store-files.js'

testFileStore('FileStore with small segments', { segmentBytes: 1024 })
testFileStore('FileStore without sync', { sync: 'none', segmentBytes: 4096 })
testFileStore('FileStore that loses its index file', { segmentBytes: 2048 }, [INDEX_FILE])
