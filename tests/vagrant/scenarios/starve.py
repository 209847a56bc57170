#!/usr/bin/python3
"""Opens TLS connections to a server and keeps them: starve.py HOST:PORT IDLE SLOW PATH

An idle client sends nothing; a slow one sends the header of a request byte by byte, or reads the response to GET PATH byte by
byte. All connect again when they are disconnected. Prints one line once each has tried to connect.
"""

import asyncio
import resource
import ssl
import sys

_BEAT = 3
_PATIENCE = 10


def _context():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _idle(reader, _writer):
    await reader.read()


async def _slow_header(_reader, writer):
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(_BEAT)


async def _slow_reader(path, reader, writer):
    writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    while await reader.read(1):
        await asyncio.sleep(_BEAT)


async def _client(act, host, port, context, begun):
    while True:
        try:
            connecting = asyncio.open_connection(host, port, ssl=context, limit=1024)
            reader, writer = await asyncio.wait_for(connecting, _PATIENCE)
        except (OSError, asyncio.TimeoutError):
            begun.add(asyncio.current_task())
            await asyncio.sleep(_BEAT)
            continue
        begun.add(asyncio.current_task())
        try:
            await act(reader, writer)
        except OSError:
            pass
        finally:
            writer.transport.abort()
        await asyncio.sleep(_BEAT)


async def main(target, idle, slow, path):
    host, port = target.rsplit(":", 1)
    context, begun = _context(), set()

    async def read_slowly(reader, writer):
        await _slow_reader(path, reader, writer)

    acts = [_idle] * idle + [_slow_header, read_slowly] * (slow // 2)
    clients = [asyncio.create_task(_client(act, host, int(port), context, begun)) for act in acts]
    while len(begun) < len(clients):
        await asyncio.sleep(0.2)
    print("each client has tried to connect", flush=True)
    await asyncio.gather(*clients)


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
