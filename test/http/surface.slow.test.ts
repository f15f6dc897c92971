import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const folder = fileURLToPath(new URL('../../lib/http/', import.meta.url))
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
)

// Types are declared, not inferred (isolatedDeclarations), so that each file shows what it exports.
test('no public type is `any`', () => {
  assert.ok(files.length > 50)
  const found: string[] = []
  for (const name of files) {
    const { outputText } = ts.transpileDeclaration(readFileSync(join(folder, name), 'utf8'), {
      fileName: name,
      compilerOptions: { isolatedDeclarations: true, strict: true },
    })
    const source = ts.createSourceFile(name, outputText, ts.ScriptTarget.ES2023)
    const visit = (node: ts.Node): void => {
      if (node.kind === ts.SyntaxKind.AnyKeyword) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart(source))
        found.push(`${name}: ${outputText.split('\n')[line]!.trim()}`)
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  assert.deepEqual(found, [])
})
