/**
 * The sandbox keeps every statement of the interface, and so does the gateway in front of it. The
 * control surface is the sandbox's own on both sides.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY, createWorld, startDaemon } from '../harness/daemon.ts';
import { makeService, type Service } from './service.ts';
import { judge, type Statement } from './statement.ts';
import { STATEMENTS } from './statements.ts';

const CLIENT = { clientId: 'test-client', clientSecret: 'test-secret' };
const checked = STATEMENTS.filter((each) => each.check !== undefined);

/** One test for each statement; here everything can be brought about. */
function holdsAt(service: () => Service): void {
  for (const each of checked) {
    test(nameOf(each), async () => {
      expect(await judge(each, service())).toEqual({ result: 'held' });
    });
  }
}

/** The last one that was opened ends first. */
async function closeAll(open: (() => Promise<unknown>)[]): Promise<void> {
  for (const close of open) await close();
}

const nameOf = ({ section, title }: Statement) => `${section} ${title}`;

test('Every statement stands once in the list', () => {
  const names = STATEMENTS.map(nameOf);
  expect(names.filter((name, n) => names.indexOf(name) !== n)).toEqual([]);
});

test('What cannot be seen from outside says why', () => {
  for (const { check, reason } of STATEMENTS) expect(check !== undefined || reason).toBeTruthy();
});

describe('The sandbox', () => {
  const open: (() => Promise<unknown>)[] = [];
  let service: Service;
  beforeAll(async () => {
    const world = await createWorld({ settleMs: 20 });
    open.unshift(world.close);
    const { url } = world.sandbox;
    service = makeService({ base: url, auth: url, tx: url, control: url, ...CLIENT });
    open.unshift(service.close);
  });
  afterAll(() => closeAll(open));
  holdsAt(() => service);
});

describe('The gateway', () => {
  const open: (() => Promise<unknown>)[] = [];
  let service: Service;
  beforeAll(async () => {
    const world = await createWorld({ settleMs: 20 });
    open.unshift(world.close);
    const { url, stop } = await startDaemon(world);
    open.unshift(stop);
    const hosts = { base: url, auth: url, tx: url };
    service = makeService({ ...hosts, control: world.sandbox.url, key: ADMIN_KEY, ...CLIENT });
    open.unshift(service.close);
  });
  afterAll(() => closeAll(open));
  holdsAt(() => service);
});
