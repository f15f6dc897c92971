/** Modules of Python's standard library, of all versions that are in use. */
export const PYTHON_LIBRARY: ReadonlySet<string> = new Set(
  (
    'abc aifc annotationlib argparse array ast asynchat asyncio asyncore atexit audioop ' +
    'base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code ' +
    'codecs codeop collections colorsys compileall compression concurrent configparser ' +
    'contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm ' +
    'decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler ' +
    'fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass ' +
    'gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib ' +
    'inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox ' +
    'mailcap marshal math mimetypes mmap modulefinder multiprocessing netrc nis nntplib ' +
    'nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle ' +
    'pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats ' +
    'pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline ' +
    'reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil ' +
    'signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile ' +
    'sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau ' +
    'symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap ' +
    'threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty ' +
    'turtle types typing unicodedata unittest urllib uu uuid venv warnings wave weakref ' +
    'webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo'
  ).split(' '),
)

/** Packages that tests often import, which a module of the workspace could stand in for. */
export const PYTHON_PACKAGES: ReadonlySet<string> = new Set(
  (
    'pytest pluggy iniconfig hypothesis nose mock responses freezegun parameterized faker ' +
    'requests httpx aiohttp numpy pandas scipy yaml toml tomli attr attrs six dateutil pytz ' +
    'click flask django jinja2 werkzeug pydantic sqlalchemy bs4 lxml jsonschema deepdiff ' +
    'approvaltests syrupy'
  ).split(' '),
)
