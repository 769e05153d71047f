# SPDX-License-Identifier: Apache-2.0
"""Networks in user space: TCP proxies that pass so many bytes a second, each way.

  slow_links.py BYTES_PER_SECOND LISTEN:TARGET[:PROCESS] [...]      ports of loopback

Each proxy stands for the network card of a node: all that comes to its target shares one direction, all that leaves it the other. With
the number of each node's process, what a process sends through another's proxy goes through its own card too.
"""
import asyncio
import os
import sys

CHUNK = 16 << 10
LAG = .005  # seconds: what was lost by sleeping too long is made up for


class Direction:
    def __init__(self, rate):
        self.rate, self.free_at, self.lock = rate, 0., asyncio.Lock()

    async def take(self, count):
        """Waits until `count` bytes have gone by."""
        async with self.lock:
            loop = asyncio.get_running_loop()
            self.free_at = max(self.free_at, loop.time() - LAG) + count / self.rate
            delay = self.free_at - loop.time()
            if delay > .0005:
                await asyncio.sleep(delay)


class Node:
    def __init__(self, text, rate):
        self.listen, self.target, *process = map(int, text.split(':'))
        self.process = process[0] if process else None
        self.incoming, self.outgoing = Direction(rate), Direction(rate)


def socket_of(port):
    """The kernel's number of the socket that holds a port of loopback."""
    with open('/proc/net/tcp') as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if fields[1] == '0100007F:%04X' % port:
                return 'socket:[%s]' % fields[9]
    return None


def holds(process, socket):
    folder = '/proc/%d/fd' % process
    for name in os.listdir(folder):
        try:
            if os.readlink(os.path.join(folder, name)) == socket:
                return True
        except OSError:
            pass  # it was closed meanwhile
    return False


def owner(nodes, port):
    """The node whose process has connected from a port; none if it is not known."""
    socket = socket_of(port)
    return next((node for node in nodes if node.process and socket and holds(node.process, socket)), None)


async def pump(reader, writer, directions):
    try:
        while data := await reader.read(CHUNK):
            await asyncio.gather(*(direction.take(len(data)) for direction in directions))
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve(node, nodes):
    async def connected(reader, writer):
        other = owner(nodes, writer.get_extra_info('peername')[1])
        try:
            to_target, from_us = await asyncio.open_connection('127.0.0.1', node.target)
        except OSError:
            writer.close()
            return
        there, back = [node.incoming], [node.outgoing]
        if other is not None and other is not node:
            there.append(other.outgoing)
            back.append(other.incoming)
        await asyncio.gather(pump(reader, from_us, there), pump(to_target, writer, back))

    server = await asyncio.start_server(connected, '127.0.0.1', node.listen)
    await server.serve_forever()


async def main():
    rate = float(sys.argv[1])
    nodes = [Node(text, rate) for text in sys.argv[2:]]
    await asyncio.gather(*(serve(node, nodes) for node in nodes))


if __name__ == '__main__':
    asyncio.run(main())
