"""Every offer that python3-websockets can make, to each path of a server: port, number of paths."""
import asyncio
import itertools
import sys

import websockets
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

PORT, PATHS = int(sys.argv[1]), int(sys.argv[2])
MESSAGES = ["some words that come again " * 300, "", b"\x00\xff" * 700, "some words that come again " * 20]
# The library cannot compress with a window of 2^8 itself.
OFFERS = list(
    itertools.product([False, True], [False, True], [None, *range(8, 16)], [None, True, *range(9, 16)])
)


async def converse(path: int, offer: tuple) -> None:
    factory = ClientPerMessageDeflateFactory(*offer)
    async with websockets.connect(
        f"ws://127.0.0.1:{PORT}/{path}", extensions=[factory], compression=None
    ) as client:
        assert len(client.extensions) == 1
        for message in MESSAGES:
            await client.send(message)
            assert await client.recv() == message


async def main() -> None:
    count = 0
    for i, offer in enumerate(OFFERS):
        for path in {i % PATHS, (i * 7 + 3) % PATHS}:
            try:
                await converse(path, offer)
            except Exception as error:
                print(f"path {path}, offer {offer}: {error!r}")
                sys.exit(1)
            count += 1
    print(count)


asyncio.run(main())
