/** Ordinary output comes through byte for byte, whatever weak secrets the environment holds. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { StreamRedactor } from '../../../lib/agent/redaction/stream-redactor.js'
import { addSecrets, redactor } from '../../../lib/agent/redaction/redactor.js'

const WEAK = {
  PGPASSWORD: 'test',
  PASSWORD: 'admin',
  DB_PASSWORD: 'postgres',
  MYSQL_PWD: 'root',
  TOKEN: '12345678',
  NPM_TOKEN: 'node_modules',
  API_KEY: '/usr/bin',
  APP_KEY: '/home/me/app',
  SECRET: 'password',
  CLIENT_SECRET: 'undefined',
  ACCESS_TOKEN: 'function',
  REFRESH_TOKEN: 'true',
  AUTH_TOKEN: 'localhost',
  SESSION_KEY: '1.2.3',
  SIGNING_KEY: 'index.ts',
  JWT_SECRET: 'secret',
  MAX_TOKENS: '4096',
  REDIS_PASSWORD: '0',
  CI_TOKEN: 'passed',
  PASS: 'ok',
  GITHUB_PAT: 'main',
}

const sha = (text: string, algorithm = 'sha256'): string =>
  createHash(algorithm).update(text).digest('hex')
const base64 = (text: string, times = 40): string =>
  createHash('sha512').update(text).digest('base64').slice(0, 86).repeat(times)

const OUTPUTS: readonly string[] = [
  'TAP version 13\n# Subtest: test admin\nok 1 - test passed\n1..1\n# tests 12345678\n# pass 1\n',
  '✔ test passes (0.3ms)\n✖ password is checked (12.1ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\n',
  'PASS src/index.test.ts\n  ✓ adds (2 ms)\n\nTests:       1 passed, 1 total\nTime:        0.4 s\n',
  ' RUN  v1.2.3 /home/me/app\n\n ✓ test/index.ts (4 tests) 5ms\n\n Test Files  1 passed (1)\n',
  '=== RUN   TestAdmin\n--- PASS: TestAdmin (0.00s)\nok  \texample.test/a\t0.002s\n',
  'running 2 tests\ntest tests::password ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored\n',
  '============ test session starts ============\ntests/test_a.py::test_admin PASSED [100%]\n',
  'F\n====\nE       assert "password" == "admin"\nE         - admin\nE         + password\n',
  `commit ${sha('a', 'sha1')}\nAuthor: Root <root@localhost>\nDate:   Sun Nov 22 10:00:00 2026\n`,
  `${sha('b', 'sha1').slice(0, 7)} (HEAD -> main, origin/main) test: password of admin\n`,
  'On branch main\nYour branch is up to date with "origin/main".\n\tmodified:   index.ts\n',
  `diff --git a/index.ts b/index.ts\nindex ${sha('c').slice(0, 7)}..${sha('d').slice(0, 7)} 100644\n`,
  '--- a/test\n+++ b/test\n@@ -1,3 +1,3 @@\n-const password = ask()\n+const password = prompt()\n',
  'origin\tgit@github.com:me/app.git (fetch)\norigin\thttps://github.com/me/app.git (push)\n',
  'added 123 packages, and audited 124 packages in 4s\n\nfound 0 vulnerabilities\n',
  'npm error code E404\nnpm error 404 Not Found - GET http://localhost:4873/@me%2ftest\n',
  'npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory.\n',
  `"node_modules/a": {\n  "version": "1.2.3",\n  "integrity": "sha512-${base64('e', 1)}=="\n}\n`,
  `a@^1.2.3:\n  version "1.2.3"\n  resolved "https://example.test/a.tgz#${sha('f', 'sha1')}"\n`,
  `[[package]]\nname = "secret"\nversion = "1.2.3"\nchecksum = "${sha('g')}"\n`,
  `example.test/mod v1.2.3 h1:${base64('h', 1).slice(0, 43)}=\n`,
  `requests==2.31.0 \\\n    --hash=sha256:${sha('i')}\n`,
  `${sha('j')}  index.ts\n${sha('k', 'md5')}  test\n`,
  'f47ac10b-58cc-4372-a567-0e02b2c3d479\n018f4e5a-7b1c-7def-8123-456789abcdef\n',
  'https://example.test:8443/a/b?token=none&page=2#admin\nhttp://localhost:3000/@test/admin\n',
  'http://[::1]:8080/ ws://127.0.0.1:8000/api/ws/1?after=0 mailto:root@localhost\n',
  'ssh://git@github.com:22/me/app.git file:///home/me/app/index.ts\n',
  `data:image/png;base64,${base64('l')}\n`,
  `<img src="data:image/svg+xml;base64,${base64('m')}" alt="admin">\n`,
  `${base64('n').replaceAll(/.{76}/g, '$&\n')}\n`,
  '2026-11-22T10:00:00.000Z 1795341600000 2026-11-22 10:00:00 +0000 UTC 12345678\n',
  '/usr/bin/node /usr/bin:/bin:/home/me/app/node_modules/.bin ./test ../admin ~/secret\n',
  'total 8\ndrwxr-xr-x 2 root root 4096 Nov 22 10:00 test\n-rw-r--r-- 1 root root 0 index.ts\n',
  '| user | password | role |\n|---|---|---|\n| root | (hidden) | admin |\n',
  'id  name    role\n--  ------  -----\n1   test    admin\n2   root    main\n(2 rows)\n',
  'Passwort, contraseña, пароль, 密码, 🔑: bitte eingeben — «admin» · naïve café\n',
  '{"id":12345678,"ok":true,"user":"admin","roles":["test","main"],"path":"/usr/bin"}\n',
  '[\n  { "test": "password", "password": null, "secret": false }\n]\n',
  'services:\n  db:\n    image: postgres:16\n    ports: ["5432:5432"]\n    user: root\n',
  'name: test\non: { push: { branches: [main] } }\nenv:\n  TOKEN: ${{ secrets.TOKEN }}\n',
  '[user]\n\tname = admin\n[core]\n\tbare = false\n[remote "origin"]\n\tfetch = +refs/heads/main\n',
  "import { test } from 'node:test'\nconst password = process.env.PASSWORD ?? ''\n",
  "const url = `https://${user}:${password}@${host}/${path}`\nconst key = config['api_key']\n",
  'headers.authorization = `Bearer ${token}`\nheaders["x-api-key"] = key\n',
  "if (request.headers.authorization === undefined) throw new Error('no authorization: sign in')\n",
  'self._password = password\nself._auth = HTTPBasicAuth(user, password)\nthis._authToken = token\n',
  'def login(user, password="", *, token=None):\n    return check(user, password)\n',
  'fn main() {\n    let secret = env::var("SECRET").unwrap();\n    println!("{secret}");\n}\n',
  'SELECT "password" FROM "user" WHERE host = $1 AND port = 5432; -- admin\n',
  'CREATE ROLE admin LOGIN;\nALTER TABLE test ADD COLUMN password text NOT NULL;\n',
  'var a=1,password=b,c;a.password=b;if(a)d.pwd=c;function secret(a){return a.token}\n',
  'psql --host localhost --username postgres --no-password --dbname test\n',
  'curl -H "Authorization: Bearer $TOKEN" -H "Cookie: $COOKIE" https://api.test/v1\n',
  'Usage: tool [options]\n\n  --token <token>     the token\n  --password <file>   a file\n',
  'The machine login shows a password prompt. The bearer authentication uses a token.\n',
  'Cookie: a small text that a server stores. Authorization: see below. Set-Cookie is a header.\n',
  'Error: expected "admin" to equal "test"\n    at file:///home/me/app/index.ts:12:34\n',
  'Traceback (most recent call last):\n  File "/usr/bin/test", line 1, in <module>\nKeyError: 1\n',
  "error TS2322: Type 'undefined' is not assignable to type 'string'.\n  12 password: string\n",
  '%s:%s@%s %d {} <password> ***:***@host https://<user>:<password>@host https://u:***@host\n',
  '-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUK\n-----END CERTIFICATE-----\n',
  'sk-learn task-force AKIA npm_config_cache hf_hub eyJust ghp_short AIza xoxb- whsec_ SG.a.b\n',
  '\u001b[32m✓\u001b[39m test \u001b[2m(admin)\u001b[22m\r\n\u0000\u0001\ufffd\n',
]

test('ordinary output is unchanged in an environment full of weak secrets', () => {
  addSecrets([], WEAK)
  assert.ok(OUTPUTS.length >= 60)
  for (const output of OUTPUTS) {
    assert.equal(redactor.text(output), output)
    assert.equal(redactor.lines(output), output)
    const stream = new StreamRedactor(redactor)
    let shown = ''
    for (let at = 0; at < output.length; at += 7) shown += stream.push(output.slice(at, at + 7))
    assert.equal(shown + stream.end(), output)
  }
  const all = OUTPUTS.join('\n')
  assert.equal(redactor.text(all), all)
})

test('a weak secret blocks no edit', () => {
  addSecrets([], WEAK)
  for (const content of [
    ...OUTPUTS,
    'PGPASSWORD=test npm test',
    'DATABASE_URL=postgres://postgres:postgres@localhost:5432/app',
    "fetch(url, { headers: { authorization: 'Bearer test-token-123' } })",
  ]) {
    assert.equal(redactor.findsIn({ path: 'a', content }), false, content)
  }
})
