/** Python source that writes the report; expects `HERE`, `NONCE` and the modules json, os, time. */
export const PYTHON_WRITER: string = String.raw`
class _Writer:
    # Functions are kept as defaults, before any code of the workspace could replace them.
    def __init__(self, open_file=os.open, fdopen=os.fdopen):
        path = os.path.join(HERE, 'report-%d-%d.jsonl' % (time.monotonic_ns(), os.getpid()))
        fd = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.file = fdopen(fd, 'w', encoding='utf-8')

    def write(self, *line, dumps=json.dumps):
        self.file.write(dumps([NONCE] + list(line)) + '\n')

    def end(self):
        self.write('end')
        self.file.close()
`
