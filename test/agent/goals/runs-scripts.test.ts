import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mayRunScripts } from '../../../lib/agent/goals/reports/early-exits.js'

for (const command of [
  'false', ':', 'exit 3', 'test -f out.txt', '[ -s out.txt ]', 'cmp a.txt b.txt && echo same',
  "grep -q 'node check.js' README", 'cat a | grep x; ls\nwc -l b', '  true # node check.js',
]) {
  test(`no script can run behind: ${command}`, () => {
    assert.equal(mayRunScripts(command), false)
  })
}

for (const command of [
  'node check.js', './check.sh', 'test -f a && python3 check.py', 'true; make', 'false || node x',
  'cat a | node -', 'true & node check.js', 'true\nnode check.js', 'echo `node check.js`',
  'echo $(node check.js)', 'echo "$(node check.js)"', 'grep x <(node check.js)', '. ./check.sh',
  'source check.sh', 'exec node check.js', 'eval "node check.js"', 'A=1 node check.js',
  'PATH=. grep x a', 'env node check.js', 'command node check.js', '! node check.js', '"node" x',
  "n''ode x", 'no\\de x', 'test() { node x; }; test', 'alias test=node; test x', '"$RUNNER" x',
  'if test -f a; then node x; fi', '(node check.js)', '{ node check.js; }', 'trap "node x" EXIT',
  'find . -exec node x', 'xargs node', 'sort --compress-program=./x a', 'awk -f x', 'sed -f x a',
  'grep x a > node_modules/x.js; npm test', '/bin/grep x a', './grep x a', 'sh -c "true"',
  "echo 'a\n# b'; node x", 'echo "a\nnode x" | sh', "true 'a' \"b; node x\" ; node x",
]) {
  test(`a script may run behind: ${command}`, () => {
    assert.equal(mayRunScripts(command), true)
  })
}
