/** Makes copies of a folder again and again, until it is killed. */
import { IsolatedFolders } from '../../../lib/agent/isolation/isolated-folders.js'

const [folder, cwd] = process.argv.slice(2) as [string, string]
const folders = new IsolatedFolders({ folder, maxBytes: 1e9, closed: [] })
for (;;) {
  await new Promise((done) => process.stdout.write('again\n', done))
  await folders.create('run', cwd, { mounts: false })
}
