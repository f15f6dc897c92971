"""Runs a program on a pseudo-terminal: python3 pseudo-terminal.py COLUMNS PROGRAM [ARGUMENT]...

Standard input is typed, standard output gets what the terminal shows, and each line on file
descriptor 3 sets the number of columns. Ends with the exit code of the program.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios


def resize(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))


process, terminal = pty.fork()
if process == 0:
    resize(0, int(sys.argv[1]))
    os.close(3)
    os.execvp(sys.argv[2], sys.argv[2:])

sources = [terminal, 0, 3]
while True:
    ready, _, _ = select.select(sources, [], [])
    if terminal in ready:
        try:
            shown = os.read(terminal, 65536)
        except OSError:
            break  # the program has ended
        if not shown:
            break
        os.write(1, shown)
    for source in (0, 3):
        if source not in ready:
            continue
        data = os.read(source, 4096)
        if not data:
            sources.remove(source)
        elif source == 0:
            os.write(terminal, data)
        else:
            resize(terminal, int(data.split()[-1]))

_, status = os.waitpid(process, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
