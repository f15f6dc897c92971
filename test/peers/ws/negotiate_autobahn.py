"""Every offer that python3-autobahn can make, to each path of a server: port, number of paths."""
import asyncio
import itertools
import sys

from autobahn.asyncio.websocket import WebSocketClientFactory, WebSocketClientProtocol
from autobahn.websocket.compress import (
    PerMessageDeflateOffer,
    PerMessageDeflateResponse,
    PerMessageDeflateResponseAccept,
)

PORT, PATHS = int(sys.argv[1]), int(sys.argv[2])
MESSAGES = ["some words that come again " * 300, "", b"\x00\xff" * 700, "some words that come again " * 20]
BITS = [0, *range(9, 16)]
OFFERS = list(itertools.product([False, True], [False, True], [False, True], BITS))


class Client(WebSocketClientProtocol):
    def onOpen(self):
        self.left = list(MESSAGES)
        self.say()

    def say(self):
        message = self.left[0]
        binary = isinstance(message, bytes)
        self.sendMessage(message if binary else message.encode(), isBinary=binary)

    def onMessage(self, payload, isBinary):
        assert (payload if isBinary else payload.decode()) == self.left.pop(0)
        if self.left:
            self.say()
        else:
            self.sendClose(1000)

    def onClose(self, wasClean, code, reason):
        done = wasClean and not self.left and self.websocket_extensions_in_use != []
        self.factory.done.set_result(None if done else f"{code} {reason}")


def accept(response):
    if isinstance(response, PerMessageDeflateResponse):
        return PerMessageDeflateResponseAccept(response)


async def converse(path: int, offer: tuple) -> None:
    factory = WebSocketClientFactory(f"ws://127.0.0.1:{PORT}/{path}")
    factory.protocol = Client
    factory.done = asyncio.get_running_loop().create_future()
    factory.setProtocolOptions(
        # Seconds; its own limit of one is too short for a busy machine.
        closeHandshakeTimeout=120,
        openHandshakeTimeout=120,
        perMessageCompressionOffers=[PerMessageDeflateOffer(*offer)],
        perMessageCompressionAccept=accept,
    )
    await asyncio.get_running_loop().create_connection(factory, "127.0.0.1", PORT)
    fault = await factory.done
    if fault is not None:
        print(f"path {path}, offer {offer}: {fault}")
        sys.exit(1)


async def main() -> None:
    count = 0
    for i, offer in enumerate(OFFERS):
        for path in {i % PATHS, (i * 7 + 3) % PATHS, (i * 5 + 11) % PATHS}:
            await converse(path, offer)
            count += 1
    print(count)


asyncio.run(main())
