/** What a receiver has seen of a sender: connections, requests, bytes and their times. */
import type { Socket } from 'node:net';
import { monotonicMs } from '../../../src/kernel/clock.ts';

/** Times are milliseconds of `monotonicMs`. */
export interface SeenRequest {
  /** The event's id, the same for each attempt. */
  id: string;
  path: string;
  /** Its first part. */
  body: string;
  /** When it was read whole. */
  atMs: number;
  /** When our answer was complete; undefined without one. */
  answeredMs: number | undefined;
  /** When it ended, by either side. */
  endedMs: number | undefined;
  /** Of the response; 0 before its head. */
  status: number;
  /** Of the response, as far as the sender has taken them. */
  bytes: () => number;
}

export interface SeenConnection {
  atMs: number;
  endedMs: number | undefined;
}

const BODY_KEPT = 4_096;

export class Seen {
  readonly requests: SeenRequest[] = [];
  readonly connections: SeenConnection[] = [];
  readonly sockets = new Set<Socket>();
  /** Questions for the name of the receiver. */
  queries = 0;
  /** The most connections at a time. */
  openMax = 0;

  connect(socket: Socket): void {
    const connection: SeenConnection = { atMs: monotonicMs(), endedMs: undefined };
    this.connections.push(connection);
    this.sockets.add(socket);
    this.openMax = Math.max(this.openMax, this.sockets.size);
    socket.on('error', () => {});
    socket.on('close', () => {
      connection.endedMs = monotonicMs();
      this.sockets.delete(socket);
    });
  }

  request(path: string, headers: NodeJS.Dict<string | string[]>, body: string): SeenRequest {
    const request: SeenRequest = {
      id: idOf(headers, body),
      path,
      body: body.slice(0, BODY_KEPT),
      atMs: monotonicMs(),
      answeredMs: undefined,
      endedMs: undefined,
      status: 0,
      bytes: () => 0,
    };
    this.requests.push(request);
    return request;
  }

  /** The requests of each event. */
  byId(path?: string): Map<string, SeenRequest[]> {
    const requests = this.requests.filter((one) => path === undefined || one.path === path);
    return Map.groupBy(requests, ({ id }) => id);
  }
}

/** Headers in which senders give the id of an event; without them, the `id` of the body. */
const ID_HEADERS = ['webhook-id', 'svix-id', 'x-outpost-event-id', 'x-event-id'];

function idOf(headers: NodeJS.Dict<string | string[]>, body: string): string {
  for (const name of ID_HEADERS) if (headers[name]) return String(headers[name]);
  return /"id"\s*:\s*"([^"]+)"/.exec(body)?.[1] ?? '';
}
