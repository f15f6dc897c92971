/**
 * Python source that keeps the private folder from being changed by code under test, and tells of a
 * process that ends itself with 0 while its tests run. Expects `HERE` and the modules os and sys,
 * and `_Writer` and `_Canaries`, which alone may write. Audit hooks cannot be removed.
 */
export const PYTHON_GUARD: string = String.raw`
def _guard(canaries, is_done, getpid=os.getpid, getframe=sys._getframe, leave=os._exit,
           realpath=os.path.realpath, fsdecode=os.fsdecode, isinstance=isinstance):
    pid = getpid()
    folder = realpath(HERE)
    compiled = os.path.join(folder, 'compiled', '')
    own = (_Writer.__init__.__code__, canaries.send.__code__)
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    changes = frozenset((
        'os.remove', 'os.rename', 'os.link', 'os.symlink', 'os.truncate', 'os.rmdir', 'os.chmod',
        'shutil.rmtree', 'shutil.move',
    ))

    def inside(path):
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        path = os.path.join(realpath(fsdecode(path)), '')
        return path.startswith(os.path.join(folder, '')) and not path.startswith(compiled)

    def tell():
        if getpid() == pid and not is_done():
            canaries.send('changed', '*')

    def refuse():
        canaries.send('changed', '*')
        raise PermissionError('the report of the check is written by the check alone')

    def hook(event, arguments):
        if event == 'open':
            path, mode, flags = arguments
            # Without a mode it is os.open(), which opens folders as well.
            if (mode is None or flags & writes) and inside(path):
                if getframe(1).f_code not in own:
                    refuse()
        elif event in changes:
            if inside(arguments[0]) or (len(arguments) > 1 and inside(arguments[1])):
                refuse()
        elif event == 'os.exec':
            tell()

    def _exit(status):
        if status == 0:
            tell()
        leave(status)

    os._exit = _exit
    sys.modules[os.name]._exit = _exit
    sys.addaudithook(hook)
`
