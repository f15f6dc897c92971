/** Whether a test stands for a file that failed to load; it disappears when the file loads. */
export function isFileFailure(name: string): boolean {
  const isScript = /^\S+\.\w+$/.test(name) && (/[\\/]/.test(name) || /test|spec/.test(name))
  // AVA reports an error at load, the end of the process, and a file without tests like tests.
  const isOfAva =
    /^[A-Za-z]*Error: /.test(name) ||
    / exited (?:with a non-zero exit code: |due to SIG|because of )/.test(name) ||
    name.startsWith('No tests found in ')
  return isScript || isOfAva || name.includes('_FailedTest') || name.startsWith('ERROR ')
}

/** Whether a test stands for what runs before or after others; it disappears when that works. */
export function isFixtureFailure(name: string): boolean {
  return (
    /"(?:before|after) (?:all|each)" hook\b/.test(name) ||
    /(?:^|\.)(?:setUp|tearDown)(?:Class|Module)$/.test(name)
  )
}
