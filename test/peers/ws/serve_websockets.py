"""The server of python3-websockets, which echoes; prints its port. Argument: plain or deflate."""
import asyncio
import sys

import websockets


async def echo(connection, path=None):
    async for message in connection:
        await connection.send(message)


async def main(compress: bool) -> None:
    compression = "deflate" if compress else None
    async with websockets.serve(
        echo, "127.0.0.1", 0, subprotocols=["echo"], compression=compression, max_size=2**26
    ) as server:
        print(list(server.sockets)[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main(sys.argv[1] == "deflate"))
