"""The client of python3-autobahn against the echo server: host, port, then whether to compress."""
import asyncio
import sys

from autobahn.asyncio.websocket import WebSocketClientFactory, WebSocketClientProtocol
from autobahn.websocket.compress import (
    PerMessageDeflateOffer,
    PerMessageDeflateResponse,
    PerMessageDeflateResponseAccept,
)

MESSAGES = ["", "hello", "κόσμε € 💩", "x" * 70_000, b"", b"\x00\xff" * 100, bytes(1_000_000)]


class Client(WebSocketClientProtocol):
    def onOpen(self):
        self.left = list(MESSAGES)
        self.say()

    def say(self):
        message = self.left[0]
        binary = isinstance(message, bytes)
        self.sendMessage(message if binary else message.encode(), isBinary=binary)

    def onMessage(self, payload, isBinary):
        expected = self.left.pop(0)
        assert (payload if isBinary else payload.decode()) == expected
        if self.left:
            self.say()
        else:
            self.sendClose(4000, "done")

    def onClose(self, wasClean, code, reason):
        print(wasClean, code, self.websocket_extensions_in_use != [], len(self.left))
        asyncio.get_event_loop().stop()


def accept(response):
    if isinstance(response, PerMessageDeflateResponse):
        return PerMessageDeflateResponseAccept(response)


host, port, mode = sys.argv[1:]
factory = WebSocketClientFactory(f"ws://{host}:{port}/echo", protocols=["echo"])
factory.protocol = Client
# Seconds; its own limits are too short for a busy machine.
factory.setProtocolOptions(closeHandshakeTimeout=120, openHandshakeTimeout=120)
if mode == "deflate":
    factory.setProtocolOptions(
        perMessageCompressionOffers=[PerMessageDeflateOffer()], perMessageCompressionAccept=accept
    )
loop = asyncio.get_event_loop()
loop.run_until_complete(loop.create_connection(factory, host, int(port)))
loop.run_forever()
