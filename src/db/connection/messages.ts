/** Messages of the protocol of Postgres, of which no byte too many is read from the socket. */
import type { Socket } from 'node:net';

export interface Message {
  type: string;
  body: Buffer;
  /** As it was received. */
  bytes: Buffer;
}

/** More than any message of a log-in. */
const LENGTH_MAX = 1 << 20;

/** @throws the error of the socket, or one with code CONNECTION_CLOSED */
export async function readMessage(socket: Socket): Promise<Message> {
  const head = await readBytes(socket, 5);
  const length = head.readInt32BE(1) - 4;
  if (length < 0 || length > LENGTH_MAX) throw coded('08P01', 'a message that is too long');
  const body = length > 0 ? await readBytes(socket, length) : Buffer.alloc(0);
  return { type: String.fromCharCode(head[0] ?? 0), body, bytes: Buffer.concat([head, body]) };
}

/** Exactly so many, which the socket then no longer has. */
export function readBytes(socket: Socket, count: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const attempt = () => {
      const bytes: Buffer | null = socket.read(count);
      // At its end a stream gives what is left.
      if (bytes?.length === count) done(() => resolve(bytes));
    };
    const fail = (error: Error) => done(() => reject(error));
    const close = () => fail(coded('CONNECTION_CLOSED', 'the connection was closed'));
    const done = (settle: () => void) => {
      for (const [event, listener] of listeners) socket.off(event, listener);
      settle();
    };
    const listeners = [
      ['readable', attempt],
      ['error', fail],
      ['end', close],
      ['close', close],
    ] as const;
    for (const [event, listener] of listeners) socket.on(event, listener);
    if (socket.destroyed) close();
    else attempt();
  });
}

/** A message with a type, or one without, such as the first. */
export function encoded(type: string, ...parts: (string | number | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map(bytesOf));
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

/** A text ends with NUL. */
function bytesOf(part: string | number | Buffer): Buffer {
  if (typeof part === 'string') return Buffer.from(`${part}\0`);
  if (typeof part !== 'number') return part;
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(part);
  return bytes;
}

/** The fields of an error: S, C, M and others. */
export function fieldsOf({ body }: Message): Record<string, string> {
  const parts = body.toString('utf8').split('\0').filter(Boolean);
  return Object.fromEntries(parts.map((part) => [part.slice(0, 1), part.slice(1)]));
}

/** An error that counts as one of the database, which refused or ended the connection with it. */
export function coded(code: string, text: string): Error {
  return Object.assign(new Error(text), { name: 'PostgresError', severity: 'FATAL', code });
}
