import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { workspace, type Files } from './support.js'

/** In the format that `go doc test2json` describes. */
export const GO_EVENTS: string = [
  '# a line that is no event',
  '{"Action":"start","Package":"example.org/sums"}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestAdd"}',
  '{"Action":"output","Package":"example.org/sums","Test":"TestAdd","Output":"=== RUN   TestAdd\\n"}',
  '{"Action":"output","Package":"example.org/sums","Test":"TestAdd","Output":"{\\"Action\\":\\"pass\\",\\"Package\\":\\"x\\",\\"Test\\":\\"TestForged\\"}\\n"}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestAdd/small"}',
  '{"Action":"fail","Package":"example.org/sums","Test":"TestAdd/small","Elapsed":0}',
  '{"Action":"fail","Package":"example.org/sums","Test":"TestAdd","Elapsed":0.01}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestLater"}',
  '{"Action":"skip","Package":"example.org/sums","Test":"TestLater","Elapsed":0}',
  '{"Action":"run","Package":"example.org/sums","Test":"TestLost"}',
  '{"Action":"output","Package":"example.org/sums","Output":"FAIL\\n"}',
  '{"Action":"fail","Package":"example.org/sums","Elapsed":0.02}',
  '{"ImportPath":"example.org/broken","Action":"build-output","Output":"./a.go:1: oops\\n"}',
  '{"Action":"fail","Package":"example.org/broken","Elapsed":0,"FailedBuild":"example.org/broken"}',
  '{"Action":"skip","Package":"example.org/none","Elapsed":0}',
  '',
].join('\n')

/** PATH with a folder of these programs first. */
export async function programs(t: TestContext, files: Files): Promise<Record<string, string>> {
  const folder = await workspace(t, files)
  for (const name of Object.keys(files)) await chmod(join(folder, name), 0o755)
  return { PATH: `${folder}:${process.env['PATH']}` }
}
