/** Test files by the patterns of node:test, Jest, Vitest, Mocha and Bun. */
export const JS_TESTS: readonly string[] = [
  '**/*.{test,spec}.{js,cjs,mjs,jsx,ts,cts,mts,tsx}',
  '**/*{-,_}test.{js,cjs,mjs,ts,cts,mts}',
  '**/{test,spec}.{js,cjs,mjs,ts,cts,mts}',
  '**/test-*.{js,cjs,mjs,ts,cts,mts}',
]

/** Test files by the patterns of pytest and unittest. */
export const PYTHON_TESTS: readonly string[] = ['**/test_*.py', '**/*_test.py', '**/tests.py']

/** Test files by the patterns of runners for other languages. */
export const OTHER_TESTS: readonly string[] = [
  '**/*_test.{go,c,cc,cpp,cxx,rb,exs,dart,zig}',
  '**/test_*.{c,cc,cpp,cxx,rb}',
  '**/*_spec.rb',
  '**/*{Test,Tests,IT,Spec}.{java,kt,groovy,scala,cs,swift,php}',
  '**/*.{bats,t}',
]

/** Files that only pytest reads; it also reads tox.ini, setup.cfg and pyproject.toml. */
export const PYTEST_CONFIG: readonly string[] = [
  'pytest.ini', '.pytest.ini', 'pytest.toml', '.pytest.toml',
]

/** Globs of Cargo's manifests and settings, and of the files that select the toolchain. */
export const CARGO_CONFIG: readonly string[] = [
  '**/Cargo.toml',
  '**/.cargo/config{,.toml}',
  'rust-toolchain{,.toml}',
]

/** Folders of tests, with their helpers, fixtures and snapshots. */
export const TEST_TREES: readonly string[] = [
  '**/{test,tests,spec,specs,__tests__,__snapshots__,testdata}/**',
  // Tests of types.
  '**/{test-d,type-tests,types-test,typetests,__typetests__,dtslint}/**',
  '**/*.test-d.{ts,tsx}',
]

/** Files in test folders that are not part of the check: output of programs and of builds. */
export const UNTRACKED: { readonly always: readonly string[]; readonly built: readonly string[] } =
  {
    always: ['!**/{tmp,temp,output}/**', '!**/*.{log,tmp,pyc,tsbuildinfo}'],
    built: ['!**/{dist,build,out,lib-cov,target}/**'],
  }

/**
 * Configuration that decides what a runner runs: a new file matters as much as a changed one. In
 * `package.json`, `pyproject.toml`, `setup.cfg` and `tox.ini` only the part that concerns the check
 * counts (see `relevant-part.ts`).
 */
export const SEALED: readonly string[] = [
  '**/package.json',
  '**/.npmrc',
  '**/.yarnrc',
  '**/.yarnrc.yml',
  '**/node.config.json',
  '**/{jest,vitest,vite,ava,karma,playwright,cypress,wdio,nyc,c8}.{config,conf}.*',
  '**/vitest.workspace.*',
  // These rewrite the source of tests before they run.
  '**/{babel.config.*,.babelrc*,.swcrc}',
  '**/.{mocharc,taprc,c8rc,nycrc,avarc}*',
  '**/{bunfig.toml,mocha.opts}',
  '**/conftest.py',
  '**/{.pytest,pytest}.{ini,toml}',
  '**/{pyproject.toml,setup.cfg,tox.ini}',
  // Python would import these from the working directory in place of the runner.
  '{pytest,_pytest,unittest}.py',
  '{pytest,_pytest,unittest}/**',
  '**/{sitecustomize,usercustomize}.py',
  // npm would find these programs before those of the system.
  `**/node_modules/.bin/{${[
    ...['node', 'npm', 'npx', 'yarn', 'pnpm', 'corepack', 'bun', 'sh', 'bash', 'dash', 'env'],
    ...['make', 'python', 'python3', 'pytest', 'cargo', 'go', 'true', 'exit'],
  ].join(',')}}`,
]
