/** Every statement of the interface holds at the sandbox, and at the gateway in front of it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN_KEY, createWorld, startDaemon } from '../../harness/daemon.ts';
import { makeService, type Service } from './client/service.ts';
import { checkStatement, type Statement } from './statement.ts';
import { STATEMENTS } from './statements.ts';

const CLIENT = { clientId: 'test-client', clientSecret: 'test-secret' };
const nameOf = ({ section, title }: Statement) => `${section} ${title}`;

it('The list has 543 different statements, of which 509 can be checked', () => {
  expect(new Set(STATEMENTS.map(nameOf)).size).toBe(543);
  expect(STATEMENTS).toHaveLength(543);
  expect(STATEMENTS.filter(({ check }) => check !== undefined)).toHaveLength(509);
});

it('A statement without a check has a reason', () => {
  for (const { check, reason } of STATEMENTS) expect(check !== undefined || reason).toBeTruthy();
});

/** Opens a service, registering what must be closed, last opened first. */
type Open = (onClose: (close: () => Promise<unknown>) => void) => Promise<Service>;

const openSandbox: Open = async (onClose) => {
  const world = await createWorld({ settleMs: 20 });
  onClose(world.close);
  const { url } = world.sandbox;
  return makeService({ base: url, auth: url, tx: url, control: url, ...CLIENT });
};

const openGateway: Open = async (onClose) => {
  const world = await createWorld({ settleMs: 20 });
  onClose(world.close);
  // Statements write to wallets that were never polled; waiting for a first poll only takes time.
  const { url, stop } = await startDaemon(world, { gateway: { first_poll_wait_ms: 0 } });
  onClose(stop);
  const hosts = { base: url, auth: url, tx: url, control: world.sandbox.url };
  return makeService({ ...hosts, key: ADMIN_KEY, ...CLIENT });
};

describe.each([
  ['sandbox', openSandbox],
  ['gateway', openGateway],
])('The statement holds at the %s:', (_name, open) => {
  const closing: (() => Promise<unknown>)[] = [];
  let service: Service;
  beforeAll(async () => {
    service = await open((close) => closing.unshift(close));
    closing.unshift(service.close);
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });
  for (const each of STATEMENTS.filter(({ check }) => check !== undefined)) {
    it(nameOf(each), async () => {
      expect(await checkStatement(each, service)).toEqual({ result: 'held' });
    });
  }
});
