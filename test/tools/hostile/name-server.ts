/** A name server on loopback whose answers change, or never come. */
import { createSocket } from 'node:dgram';

export interface NameServer {
  /** Such as 127.0.0.1:40123. */
  address: string;
  close(): Promise<void>;
}

const TYPE_A = 1;

/**
 * @param answer the IPv4 address of a name: null answers that there is none, as it should if that
 * was not the question, and undefined leaves the question without an answer
 */
export async function startNameServer(
  answer: (name: string, isIpv4: boolean) => string | null | undefined,
): Promise<NameServer> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, question } = questionOf(query);
    const address = answer(name, type === TYPE_A);
    if (address === undefined) return;
    socket.send(responseOf(query, question, address), from.port, from.address);
  });
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
  return {
    address: `127.0.0.1:${socket.address().port}`,
    close: () => new Promise((done) => socket.close(() => done())),
  };
}

function questionOf(query: Buffer): { name: string; type: number; question: Buffer } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  const type = query.readUInt16BE(at + 1);
  return { name: labels.join('.').toLowerCase(), type, question: query.subarray(12, at + 5) };
}

/** With a lifetime of 0 s. */
function responseOf(query: Buffer, question: Buffer, address: string | null): Buffer {
  const head = [0x81, 0x80, 0, 1, 0, address === null ? 0 : 1, 0, 0, 0, 0];
  const record =
    address === null
      ? []
      : [0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)];
  return Buffer.concat([query.subarray(0, 2), Buffer.from(head), question, Buffer.from(record)]);
}
