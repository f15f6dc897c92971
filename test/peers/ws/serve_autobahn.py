"""The server of python3-autobahn, which echoes; prints its port. Argument: plain or deflate."""
import asyncio
import sys

from autobahn.asyncio.websocket import WebSocketServerFactory, WebSocketServerProtocol
from autobahn.websocket.compress import PerMessageDeflateOffer, PerMessageDeflateOfferAccept


class Server(WebSocketServerProtocol):
    def onConnect(self, request):
        return "echo" if "echo" in request.protocols else None

    def onMessage(self, payload, isBinary):
        self.sendMessage(payload, isBinary)


def accept(offers):
    for offer in offers:
        if isinstance(offer, PerMessageDeflateOffer):
            return PerMessageDeflateOfferAccept(offer)


factory = WebSocketServerFactory()
factory.protocol = Server
# Seconds; its own limits are too short for a busy machine.
factory.setProtocolOptions(
    maxMessagePayloadSize=2**26, closeHandshakeTimeout=120, openHandshakeTimeout=120
)
if sys.argv[1] == "deflate":
    factory.setProtocolOptions(perMessageCompressionAccept=accept)
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
factory.loop = loop
server = loop.run_until_complete(loop.create_server(factory, "127.0.0.1", 0))
print(server.sockets[0].getsockname()[1], flush=True)
loop.run_forever()
