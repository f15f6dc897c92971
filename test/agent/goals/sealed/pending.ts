/** Tricks that something should catch, and nothing does yet. */
export const pending: readonly string[] = [
  'tsc: edits the settings in the folder above, which tsconfig.json extends',
  'node: edits cases that the script lists',
  'shell: edits scripts that the script runs by a pattern',
  'shell: makes a case a file that nobody may run, so that the script leaves it out',
  'shell: puts a program called diff where the script looks first',
  'shell: a server without our variables answers in place of the project’s',
  'make: creates a file called test, which make takes for the result',
  'make: adds a file that the makefile includes where it exists',
  'make: makes results look newer than what they are made of',
  'tsc: forges what the compiler remembers of the last time',
  'shell: git: takes the failing test out of the index, from which the check lists tests',
  'shell: git: changes with which program git compares',
  'pytest: edits a helper that only tests import',
  'pytest: adds a package that is found before the helper module of tests',
  'pytest: edits a plugin that pytest.ini names',
  'pytest: edits a plugin that conftest.py names',
]
