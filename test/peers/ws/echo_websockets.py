"""The client of python3-websockets against the echo server: url, then whether to compress."""
import asyncio
import sys

import websockets


async def main(url: str, compress: bool) -> None:
    compression = "deflate" if compress else None
    async with websockets.connect(
        url, subprotocols=["echo"], compression=compression, max_size=2**24
    ) as client:
        messages = ["", "hello", "κόσμε € 💩", "x" * 70_000, b"", b"\x00\xff" * 100, bytes(1_000_000)]
        for message in messages:
            await client.send(message)
            assert await client.recv() == message
        await client.send(["frag", "men", "", "ted €"])
        assert await client.recv() == "fragmented €"
        await (await client.ping(b"are you there"))
        print(client.subprotocol, bool(client.extensions))
        await client.close(4000, "done")
    print(client.close_code)


asyncio.run(main(sys.argv[1], sys.argv[2] == "deflate"))
