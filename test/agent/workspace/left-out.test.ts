import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LeftOut, Tree } from 'runwright/agent'
import {
  allRules, isPassedOver, isPrivateKey, isSecretName, LeftOutPaths, outsideTree, secretPaths,
  withinSecrets,
} from '../../../lib/agent/workspace/left-out.js'

test('names tell what holds secrets, in any case', () => {
  for (const name of [
    '.env', '.env.local', '.ENV.production', '.envrc', '.npmrc', '.netrc', '_netrc', '.pypirc',
    '.git-credentials', '.pgpass', 'id_rsa', 'id_dsa', 'id_ecdsa', 'id_ed25519', 'id_ed25519_sk',
    'ID_RSA', 'server.pem', 'tls.KEY', 'a.p8', 'a.p12', 'a.pfx', 'a.keystore', 'a.jks', 'a.ppk',
    'a.kdbx', '.htpasswd', '.ssh', '.aws', '.gnupg', '.kube', '.pem',
  ]) assert.ok(isSecretName(name), name)
  for (const name of [
    'env', 'a.env', 'id_rsa.pub', 'id_ed25519.pub', 'key', 'keys.ts', 'pem', 'a.pem.ts', 'my_id_rsa',
    'npmrc', 'a.crt', 'a.keys', 'package.json', '',
  ]) assert.ok(!isSecretName(name), name)
})

test('content tells private keys by how it begins', () => {
  for (const begin of [
    '-----BEGIN PRIVATE KEY-----', '-----BEGIN RSA PRIVATE KEY-----', '-----BEGIN EC PRIVATE KEY-----',
    '-----BEGIN ENCRYPTED PRIVATE KEY-----', '-----BEGIN OPENSSH PRIVATE KEY-----',
    '-----BEGIN PGP PRIVATE KEY BLOCK-----', '\ufeff-----BEGIN PRIVATE KEY-----',
    '\r\n\n  -----BEGIN PRIVATE KEY-----', 'PuTTY-User-Key-File-3: ssh-ed25519',
  ]) assert.ok(isPrivateKey(Buffer.from(`${begin}\nMIIE`)), begin)
  for (const begin of [
    '', '-', 'text -----BEGIN PRIVATE KEY-----', '-----BEGIN PUBLIC KEY-----', 'PRIVATE',
    '-----BEGIN CERTIFICATE-----', '-----BEGIN  KEY-----',
    `${' '.repeat(300)}-----BEGIN PRIVATE KEY-----`,
  ]) assert.ok(!isPrivateKey(Buffer.from(begin)), begin)
})

for (const { globs, secret, not } of [
  { globs: ['*.sqlite'], secret: ['a.sqlite', 'b/c/a.sqlite'], not: ['a.sqlite3', 'sqlite'] },
  { globs: ['data/**'], secret: ['data/a', 'data/b/c'], not: ['x/data/a', 'data.txt'] },
  { globs: ['data'], secret: ['data', 'x/data'], not: ['datas'] },
  { globs: ['data/'], secret: ['data', 'x/data'], not: ['datas'] },
  { globs: ['/data'], secret: ['data'], not: ['x/data'] },
  { globs: ['a/data/'], secret: ['a/data'], not: ['x/a/data'] },
  { globs: ['*.db', '!ok.db'], secret: ['x.db', 'a/x.db'], not: ['ok.db', 'a/ok.db'] },
  { globs: ['**/x.{a,b}'], secret: ['x.a', 'q/x.b'], not: ['x.c'] },
  { globs: ['*.\udcff'], secret: ['a/x.\udcff'], not: ['x.\udcfe'] },
]) {
  test(`a host that never stores ${JSON.stringify(globs)} means it in every folder that fits`, () => {
    const isSecret = secretPaths(allRules({ neverStore: globs }))
    const of = (path: string): boolean => isSecret(path, path.slice(path.lastIndexOf('/') + 1))
    assert.deepEqual(secret.filter((path) => !of(path)), [])
    assert.deepEqual(not.filter(of), [])
  })
}

const treeOf = (leftOut: readonly LeftOut[]): Tree => {
  const entry = { kind: 'file', mode: 0o644, size: 0, sha256: '' } as const
  return { entries: new Map([['kept', entry], ['.env.kept', entry]]), leftOut }
}

test('what a tree says nothing of is told from what did not exist', () => {
  const left = new LeftOutPaths()
  left.add('secret', 'a/.env')
  left.add('size', 'large')
  left.add('unreadable', 'locked')
  left.add('budget', 'not-stored')
  const isOutside = outsideTree(treeOf(left.list()))
  for (const path of [
    'a/.env', 'large', 'locked', 'locked/x/y', 'node_modules/x', 'a/.git/config', '.GIT', 'large/x',
  ]) assert.ok(isOutside(path), path)
  for (const path of ['kept', '.env.kept', 'a', 'a/b', 'larger', 'not-stored', 'unlocked']) {
    assert.ok(!isOutside(path), path)
  }
})

test('when more was left out than is named, it may be anything', () => {
  const left = new LeftOutPaths()
  for (let i = 0; i < 1_001; i++) left.add('count', `file${i}`)
  const [listed] = left.list()
  assert.deepEqual([listed?.count, listed?.paths.length], [1_001, 1_000])
  const isOutside = outsideTree(treeOf(left.list()))
  assert.deepEqual(['file7', 'anything', 'kept'].map(isOutside), [true, true, false])
  left.add('kind', '')
  assert.deepEqual(left.list().map(({ reason }) => reason), ['count', 'kind'])
  const repository = new LeftOutPaths()
  repository.add('kind', '')
  assert.ok(outsideTree(treeOf(repository.list()))('anything'))
})

test('version control, dependencies and unfinished files are passed over', () => {
  for (const name of ['.git', '.GIT', 'git~1', '.git.', 'node_modules', '.venv', '.runwright-0123456789abcdef.tmp']) {
    assert.ok(isPassedOver(name), name)
  }
  for (const name of ['git', '.gitignore', 'node_module', '.runwright', 'src']) {
    assert.ok(!isPassedOver(name), name)
  }
})

test('what lies in a folder that holds secrets holds some', () => {
  const holds = withinSecrets({ neverStore: ['data/**'] })
  for (const path of ['.env', 'a/.env.local', '.ssh/config', 'a/.aws/b/c', 'data/x/y', 'k.pem'])
    assert.equal(holds(path), true, path)
  for (const path of ['env', 'a/data.txt', 'ssh/config']) assert.equal(holds(path), false, path)
  assert.equal(withinSecrets({ storeSecretFiles: true })('.env'), false)
})

test('what is left out is counted, and named as far as that is not too long', () => {
  const found = new LeftOutPaths()
  for (let i = 0; i < 5_000; i++) found.add('secret', `${'n'.repeat(3_900)}/${i}`)
  for (let i = 0; i < 5_000; i++) found.add('kind', `short/${i}`)
  const [kind, secret] = found.list()
  assert.deepEqual([kind!.count, kind!.paths.length], [5_000, 1_000])
  assert.equal(secret!.count, 5_000)
  assert.ok(secret!.paths.length > 30 && JSON.stringify(found.list()).length < 200_000)
})
