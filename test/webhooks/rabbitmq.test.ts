/**
 * The RabbitMQ driver closes a connection on which the server opens no channel; the server here
 * answers the handshake of AMQP 0-9-1 and nothing else.
 */
import { createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { makeNetwork } from '../../src/webhooks/delivery/destinations/network.ts';
import { driver } from '../../src/webhooks/delivery/destinations/rabbitmq.ts';
import { parseRanges } from '../../src/webhooks/endpoints/address.ts';
import type { RabbitmqSettings } from '../../src/webhooks/endpoints/destination/destination.ts';
import { listen } from '../harness/listen.ts';
import { until } from '../harness/until.ts';

/** A method of AMQP 0-9-1 as a frame. */
function frame(channel: number, [classId, methodId]: Method, args: Buffer): Buffer {
  const payload = Buffer.alloc(4 + args.length);
  payload.writeUInt16BE(classId, 0);
  payload.writeUInt16BE(methodId, 2);
  args.copy(payload, 4);
  const head = Buffer.from([1, 0, channel, 0, 0, 0, payload.length]);
  return Buffer.concat([head, payload, Buffer.from([0xce])]);
}
type Method = [classId: number, methodId: number];

const longText = (text: string) => Buffer.from(`\0\0\0${String.fromCharCode(text.length)}${text}`);
const START = Buffer.concat([
  Buffer.from([0, 9, 0, 0, 0, 0]),
  longText('PLAIN'),
  longText('en_US'),
]);
/** 2,047 channels, frames of 128 KiB, and a heartbeat of a minute. */
const TUNE = Buffer.from([0x07, 0xff, 0, 2, 0, 0, 0, 60]);

/** By class and method of what the client says. */
const ANSWERS: Record<string, [channel: number, Method, Buffer]> = {
  '10.11': [0, [10, 30], TUNE],
  '10.40': [0, [10, 41], Buffer.from([0])],
  // Not what a client that opens a channel waits for.
  '20.10': [1, [20, 21], Buffer.from([1])],
  '10.50': [0, [10, 51], Buffer.alloc(0)],
};

/** Answers each method of the client; opens no channel. */
function speak(socket: Socket): void {
  let received = Buffer.alloc(0);
  let isOpen = false;
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    if (!isOpen) {
      isOpen = true;
      received = received.subarray(8);
      socket.write(frame(0, [10, 10], START));
    }
    while (received.length >= 8 && received.length >= received.readUInt32BE(3) + 8) {
      const method = `${received.readUInt16BE(7)}.${received.readUInt16BE(9)}`;
      const answer = ANSWERS[method];
      if (answer) socket.write(frame(...answer));
      received = received.subarray(received.readUInt32BE(3) + 8);
    }
  });
}

it('A connection on which RabbitMQ opens no channel is closed', async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    speak(socket);
  });
  const port = await listen(server);
  const network = makeNetwork({ allowHttp: true, allowed: parseRanges(['127.0.0.0/8']) });
  const settings: RabbitmqSettings = {
    kind: 'rabbitmq',
    servers: [`127.0.0.1:${port}`],
    tls: false,
    routingKey: 'events',
  };
  await expect(driver.open(settings, network, 30_000)).rejects.toThrow('Expected');
  const ended = await until(async () => sockets[0]?.readableEnded || undefined);
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  expect([sockets.length, ended]).toEqual([1, true]);
});
