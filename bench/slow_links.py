# SPDX-License-Identifier: Apache-2.0
"""Networks in user space: TCP proxies that pass so many bytes a second, each way.

  slow_links.py BYTES_PER_SECOND LISTEN:TARGET [LISTEN:TARGET ...]      ports of loopback

All connections through one proxy share its two directions, as those of a node share its network card.
"""
import asyncio
import sys

CHUNK = 16 << 10


class Direction:
    def __init__(self, rate):
        self.rate, self.free_at, self.lock = rate, 0., asyncio.Lock()

    async def take(self, count):
        """Waits until `count` bytes have gone by."""
        async with self.lock:
            loop = asyncio.get_running_loop()
            self.free_at = max(self.free_at, loop.time()) + count / self.rate
            delay = self.free_at - loop.time()
            if delay > .0005:
                await asyncio.sleep(delay)


async def pump(reader, writer, direction):
    try:
        while data := await reader.read(CHUNK):
            await direction.take(len(data))
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve(listen, target, rate):
    there, back = Direction(rate), Direction(rate)

    async def connected(reader, writer):
        try:
            to_target, from_us = await asyncio.open_connection('127.0.0.1', target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, from_us, there), pump(to_target, writer, back))

    server = await asyncio.start_server(connected, '127.0.0.1', listen)
    await server.serve_forever()


async def main():
    rate = float(sys.argv[1])
    await asyncio.gather(*(serve(*map(int, pair.split(':')), rate) for pair in sys.argv[2:]))


if __name__ == '__main__':
    asyncio.run(main())
