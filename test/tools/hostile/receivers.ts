/**
 * Hostile receivers on loopback, each on a port of its own, and healthy ones beside them. Each
 * knows what a correct sender does with it, and keeps what it has seen. Any sender may be judged by
 * them: nothing here knows Tallyhook.
 */
import type { Server } from 'node:net';
import { after, monotonicMs } from '../../../src/kernel/clock.ts';
import type { Authority } from '../../harness/certificates.ts';
import { freePort, listen } from '../../harness/listen.ts';
import { type NameServer, startNameServer } from './name-server.ts';
import {
  acceptsAfterwards,
  arrivesAfterwards,
  asksNothing,
  comesAgain,
  deliversOnce,
  endsIts,
  keepsCalm,
  neverAsks,
  notFollowed,
  type Rule,
  takesAtMost,
  waitsAfter,
} from './rules.ts';
import { Seen } from './seen.ts';
import { type Behaviour, drippingRelay, httpServer, repeat } from './server.ts';

/** How long things take; a test has shorter ones. */
export interface Times {
  /** In which a whole attempt must end: connection, head and body. */
  deadlineMs: number;
  /** How late the slow receiver answers 200. */
  slowMs: number;
  /** `Retry-After` of the receiver that asks for a long wait, and how long it refuses. */
  retryAfterS: number;
  refusesMs: number;
  /** How long the receiver answers 429 with `Retry-After: 0`. */
  throttlesMs: number;
  /** How long a port refuses connections after `begin`. */
  closedMs: number;
  /** In which the rest comes to a receiver that is well again. */
  patienceMs: number;
}

export const TIMES: Times = {
  deadlineMs: 30_000,
  slowMs: 12_000,
  retryAfterS: 60,
  refusesMs: 30_000,
  throttlesMs: 20_000,
  closedMs: 3_000,
  patienceMs: 60_000,
};

export interface Receiver {
  name: string;
  url: string;
  does: string;
  /** What a correct sender does. */
  expects: string;
  seen: Seen;
  rules: Rule[];
}

export interface Receivers {
  hostile: Receiver[];
  healthy: Receiver[];
  /** Resolves the names of two of the receivers. */
  nameServer: NameServer;
  /** The load begins: the closed port opens some seconds later. */
  begin(): void;
  close(): Promise<void>;
}

const FOLLOWED = '/followed';
/** Loopback, like the other: only what a sender allows tells them apart. */
const TRAP = '127.0.0.2';
export const NAMES = { rebinds: 'rebinds.hostile.test', silent: 'silent.hostile.test' };
const DRIP_MS = 250;
/** With the buffers of the machine. */
const TAKEN_MAX = 16 * 2 ** 20;

/** @param healthy how many answer 200 at once, beside one with a good certificate */
export async function openReceivers(
  authority: Authority,
  { healthy = 5, times = TIMES }: { healthy?: number; times?: Times } = {},
): Promise<Receivers> {
  const opened = new Opened(authority, times);
  const hostile = [
    ...(await answering(opened)),
    ...(await lingering(opened)),
    ...(await unreachable(opened)),
    ...(await named(opened)),
  ];
  return {
    hostile,
    healthy: await accepting(opened, healthy),
    nameServer: await opened.nameServer(),
    begin: () => opened.begin(),
    close: () => opened.close(),
  };
}

type Kind = Pick<Receiver, 'name' | 'does' | 'expects' | 'rules'>;

/** What was opened so far, to be closed at the end. */
class Opened {
  readonly times: Times;
  readonly authority: Authority;
  readonly byName = new Map<string, (isIpv4: boolean) => string | null | undefined>();
  private readonly servers: Server[] = [];
  private readonly all: Seen[] = [];
  private readonly starts: (() => void)[] = [];
  private names: NameServer | undefined;

  constructor(authority: Authority, times: Times) {
    this.authority = authority;
    this.times = times;
  }

  async http(kind: Kind, behave: Behaviour, certificate?: Certificate): Promise<Receiver> {
    const seen = this.newSeen();
    const keys = certificate && (await this.authority.issue(kind.name, certificate));
    const port = await this.listen(httpServer(seen, behave, keys));
    const url = `${keys ? 'https' : 'http'}://127.0.0.1:${port}/hook`;
    return { ...kind, url, seen };
  }

  newSeen(): Seen {
    const seen = new Seen();
    this.all.push(seen);
    return seen;
  }

  listen(server: Server): Promise<number> {
    this.servers.push(server);
    return listen(server);
  }

  /** Listens on a certain port, when the load begins and some time has passed. */
  listenLater(server: Server, port: number, ms: number): void {
    this.servers.push(server);
    this.starts.push(() => after(ms, () => server.listen(port, '127.0.0.1')));
  }

  /** A receiver at another address, with the same port. */
  async listenAt(server: Server, port: number, address: string): Promise<void> {
    this.servers.push(server);
    await new Promise<void>((done) => server.listen(port, address, done));
  }

  begin(): void {
    for (const start of this.starts) start();
  }

  async nameServer(): Promise<NameServer> {
    this.names ??= await startNameServer((name, isIpv4) => {
      const answer = this.byName.get(name);
      return answer ? answer(isIpv4) : null;
    });
    return this.names;
  }

  async close(): Promise<void> {
    for (const { sockets } of this.all) for (const socket of sockets) socket.destroy();
    await Promise.all(
      this.servers
        .filter(({ listening }) => listening)
        .map((server) => new Promise((resolve) => server.close(resolve))),
    );
    await this.names?.close();
  }
}

type Certificate = Parameters<Authority['issue']>[1];

const answer =
  (status: number, headers: Record<string, string> = {}): Behaviour =>
  ({ response }) =>
    response.writeHead(status, { 'content-length': '0', ...headers }).end();

/** Refuses for some time after the first request, then answers 200. */
function atFirst(ms: number, refuse: Behaviour): Behaviour {
  let until: number | undefined;
  return (exchange) => {
    until ??= monotonicMs() + ms;
    (monotonicMs() < until ? refuse : answer(200))(exchange);
  };
}

/** Those that answer at once. */
async function answering(opened: Opened): Promise<Receiver[]> {
  const { retryAfterS, refusesMs, throttlesMs, patienceMs } = opened.times;
  const redirects: Behaviour = (exchange) =>
    exchange.request.path === FOLLOWED
      ? answer(200)(exchange)
      : answer(302, { location: FOLLOWED })(exchange);
  return [
    await opened.http(
      {
        name: 'redirect',
        does: 'answers 302 to a path that answers 200',
        expects: 'follows nothing; it is a failure and is tried again later',
        rules: [notFollowed(FOLLOWED), comesAgain, keepsCalm],
      },
      redirects,
    ),
    await opened.http(
      {
        name: 'not-modified',
        does: 'answers 304',
        expects: 'it is a failure and is tried again later',
        rules: [comesAgain, keepsCalm],
      },
      answer(304),
    ),
    await opened.http(
      {
        name: 'gone',
        does: 'answers 410',
        expects: 'disables the endpoint at once: nothing more comes',
        rules: [asksNothing],
      },
      answer(410),
    ),
    await opened.http(
      {
        name: 'throttles-long',
        does: `answers 429 with Retry-After: ${retryAfterS} for ${refusesMs / 1000} s, then 200`,
        expects: 'sends nothing for that time, then everything; no event is given up',
        rules: [waitsAfter(retryAfterS * 1000), acceptsAfterwards(retryAfterS * 1000 + refusesMs)],
      },
      atFirst(refusesMs, answer(429, { 'retry-after': String(retryAfterS) })),
    ),
    await opened.http(
      {
        name: 'throttles-zero',
        does: `answers 429 with Retry-After: 0 for ${throttlesMs / 1000} s, then 200`,
        expects: `does not loop, uses no step of its schedule: all comes in ${patienceMs / 1000} s`,
        rules: [keepsCalm, acceptsAfterwards(throttlesMs + patienceMs)],
      },
      atFirst(throttlesMs, answer(429, { 'retry-after': '0' })),
    ),
  ];
}

/** After 64 MB the case is clear, and the rest comes slowly, so that the machine is not busy. */
const flood: Behaviour = ({ request, response }) => {
  const block = Buffer.alloc(16 * 1024, 'x');
  const more = () => {
    while (!response.destroyed && request.bytes() < 4 * TAKEN_MAX && response.write(block));
    if (request.bytes() < 4 * TAKEN_MAX) response.once('drain', more);
    else repeat(DRIP_MS, response, () => response.write(block));
  };
  response.writeHead(200);
  more();
};

/** Those whose answer does not end, or breaks off, or comes late. */
async function lingering(opened: Opened): Promise<Receiver[]> {
  const { deadlineMs, slowMs } = opened.times;
  const inTime = endsIts(deadlineMs);
  const within = `within ${deadlineMs / 1000} s`;
  return [
    await opened.http(
      {
        name: 'drips',
        does: `sends the head of a 200 and then a byte every ${DRIP_MS} ms, without an end`,
        expects: `its deadline covers the body: it ends the request ${within}`,
        rules: [inTime, keepsCalm],
      },
      ({ response }) => {
        response.writeHead(200);
        repeat(DRIP_MS, response, () => response.write('.'));
      },
    ),
    await opened.http(
      {
        name: 'floods',
        does: 'sends a 200 with a body without an end, as fast as it is taken',
        expects: `takes at most 16 MB of it, and ends the request ${within}`,
        rules: [takesAtMost(TAKEN_MAX), inTime, keepsCalm],
      },
      flood,
    ),
    await opened.http(
      {
        name: 'resets',
        does: 'cuts the connection in the middle of the body of a 200',
        expects: 'goes on with the next event, and does not repeat this one in a loop',
        rules: [keepsCalm],
      },
      ({ incoming, response }) => {
        response.writeHead(200, { 'content-length': '1000' });
        response.write('half', () => incoming.socket.resetAndDestroy());
      },
    ),
    await opened.http(
      {
        name: 'slow-head',
        does: 'sends a line of its head every second, without an end',
        expects: `its deadline is one for all: it ends the request ${within}`,
        rules: [inTime, keepsCalm],
      },
      ({ incoming: { socket } }) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        repeat(1_000, socket, () => socket.write('x-more: 1\r\n'));
      },
    ),
    await opened.http(
      {
        name: 'hangs',
        does: 'never answers',
        expects: `ends the request ${within}, and tries again later`,
        rules: [inTime, keepsCalm],
      },
      () => {},
    ),
    await opened.http(
      {
        name: 'slow',
        does: `answers 200 after ${slowMs / 1000} s`,
        expects: 'waits for it, and does not send the event again',
        rules: [deliversOnce],
      },
      ({ response }) => after(slowMs, () => response.writeHead(200).end()),
    ),
  ];
}

/** Those to which no request comes through, or not at first. */
async function unreachable(opened: Opened): Promise<Receiver[]> {
  const { deadlineMs, closedMs, patienceMs } = opened.times;
  const slow = opened.newSeen();
  const behind = await opened.http(
    { name: 'behind', does: '', expects: '', rules: [] },
    answer(200),
    {},
  );
  const relay = drippingRelay(slow, Number(new URL(behind.url).port), 500);
  const slowPort = await opened.listen(relay);
  const closed = opened.newSeen();
  const closedPort = await freePort();
  opened.listenLater(httpServer(closed, answer(200)), closedPort, closedMs);
  return [
    {
      name: 'slow-tls',
      does: 'sends its part of the TLS handshake a byte every 500 ms',
      expects: `its deadline covers the handshake: it ends the connection within ${
        deadlineMs / 1000
      } s`,
      url: `https://127.0.0.1:${slowPort}/hook`,
      seen: slow,
      rules: [endsIts(deadlineMs), neverAsks],
    },
    await opened.http(
      {
        name: 'wrong-host',
        does: 'has a certificate of another host',
        expects: 'sends nothing over that connection',
        rules: [neverAsks],
      },
      answer(200),
      { names: 'DNS:other.example' },
    ),
    await opened.http(
      {
        name: 'expired',
        does: 'has an expired certificate',
        expects: 'sends nothing over that connection',
        rules: [neverAsks],
      },
      answer(200),
      { until: '20210101000000Z' },
    ),
    {
      name: 'refused',
      does: `refuses connections for ${closedMs / 1000} s, then answers 200`,
      expects: 'delivers what it could not deliver before',
      url: `http://127.0.0.1:${closedPort}/hook`,
      seen: closed,
      rules: [arrivesAfterwards(patienceMs)],
    },
  ];
}

/** Those whose name is the trap. */
async function named(opened: Opened): Promise<Receiver[]> {
  const good = opened.newSeen();
  const trap = opened.newSeen();
  const port = await opened.listen(httpServer(good, answer(200, { connection: 'close' })));
  await opened.listenAt(httpServer(trap, answer(200)), port, TRAP);
  opened.byName.set(NAMES.rebinds, (isIpv4) => {
    if (!isIpv4) return null;
    good.queries += 1;
    return good.queries % 2 === 1 ? '127.0.0.1' : TRAP;
  });
  const silent = opened.newSeen();
  opened.byName.set(NAMES.silent, () => {
    silent.queries += 1;
    return undefined;
  });
  const isChecked: Rule = () => ({
    what: 'connected to the address that it had checked',
    held: good.requests.length + trap.connections.length === 0 ? undefined : trap.openMax === 0,
  });
  return [
    {
      name: 'dns-rebinds',
      does: `its name resolves to 127.0.0.1, then to ${TRAP}, which is not allowed, in turns`,
      expects: 'connects to the address that it has checked, never to the other one',
      url: `http://${NAMES.rebinds}:${port}/hook`,
      seen: good,
      rules: [isChecked],
    },
    {
      name: 'dns-silent',
      does: 'its name server never answers',
      expects: 'asks it, gives up in time, and delays no other receiver',
      url: `http://${NAMES.silent}:${port}/silent`,
      seen: silent,
      rules: [
        () => ({ what: 'asked for its name', held: silent.queries > 0 ? true : undefined }),
        () => ({ what: 'sent nothing', held: good.byId('/silent').size === 0 }),
      ],
    },
  ];
}

async function accepting(opened: Opened, count: number): Promise<Receiver[]> {
  const kind = (name: string, does: string): Kind => ({
    name,
    does,
    expects: 'sends every event once',
    rules: [deliversOnce],
  });
  const all = [await opened.http(kind('healthy-tls', 'answers 200, over TLS'), answer(200), {})];
  for (let n = 1; n <= count; n++)
    all.push(await opened.http(kind(`healthy-${n}`, 'answers 200'), answer(200)));
  return all;
}
