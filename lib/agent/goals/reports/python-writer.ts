/** Python source that writes the report; expects `HERE`, `NONCE` and the modules json, os, time. */
export const PYTHON_WRITER: string = String.raw`
class _Writer:
    def __init__(self):
        path = os.path.join(HERE, 'report-%d-%d.jsonl' % (time.monotonic_ns(), os.getpid()))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.file = os.fdopen(fd, 'w', encoding='utf-8')

    def write(self, *line):
        self.file.write(json.dumps([NONCE] + list(line)) + '\n')

    def end(self):
        self.write('end')
        self.file.close()
`
