/** Folders outside the work itself: version control, dependencies, environments, caches. */
export const SKIPPED_FOLDERS: ReadonlySet<string> = new Set([
  '.git', '.hg', '.svn', 'node_modules', '__pycache__', '.venv', 'venv', '.tox', '.nox',
  '.pytest_cache', '.mypy_cache', '.ruff_cache', '.hypothesis', '.nyc_output', 'coverage',
  '.cache', '.next', '.turbo',
])
