/** The two sockets of a relay. */
import type { Socket } from 'node:net';

/**
 * Passes the bytes of each socket to the other, and destroys both when one fails or closes.
 * @param open has both while they are open
 */
export function joinSockets(near: Socket, far: Socket, open: Set<Socket>): void {
  for (const [socket, other] of [
    [near, far],
    [far, near],
  ] as const) {
    open.add(socket);
    socket.on('error', () => other.destroy());
    socket.on('close', () => {
      open.delete(socket);
      other.destroy();
    });
    socket.pipe(other);
  }
}
