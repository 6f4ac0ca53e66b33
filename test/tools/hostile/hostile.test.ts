/** The hostile receivers judge Tallyhook, briefly, and find out a sender that is naive. */
import { afterEach, expect, it } from 'vitest';
import { makeAuthority } from '../../harness/certificates.ts';
import { useDatabase } from '../../harness/database.ts';
import { useFolder } from '../../harness/folder.ts';
import { until } from '../../harness/until.ts';
import { judgeTallyhook } from './judge.ts';
import { makeNaiveSender, type NaiveSender } from './naive-sender.ts';
import { openReceivers, type Receivers, TIMES } from './receivers.ts';
import { verdictsOf, verdictText } from './verdict.ts';

const folder = useFolder();
const database = await useDatabase();
const opened: (Receivers | NaiveSender)[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

it('Each hostile receiver is treated as it should be, and healthy ones get every event once', async () => {
  const judgement = await judgeTallyhook(database.url, {
    seconds: 14,
    aloneS: 0,
    perS: 4,
    refusedEveryS: 3,
    healthy: 2,
    times: {
      ...TIMES,
      deadlineMs: 8_000,
      slowMs: 1_200,
      retryAfterS: 6,
      refusesMs: 3_000,
      throttlesMs: 4_000,
      closedMs: 1_500,
    },
    settings: { webhooks: { attempt_timeout_ms: 2_000 } },
  });
  const all = [...judgement.hostile, ...judgement.healthy];
  const broken = all.filter(({ held }) => held === false).map(verdictText);
  expect(broken.join('\n')).toBe('');
  // Whether all comes in the end takes longer: `npm run hostile`.
  const notShown = all.filter(({ held }) => held === undefined).map(({ receiver }) => receiver);
  expect(notShown.filter((name) => name !== 'refused')).toEqual([]);
  expect(judgement.missing).toEqual([]);
  expect(judgement.writes.failed).toBe(0);
});

/** Whose faults a naive sender shows; it never tries the others again, which shows nothing. */
const FOUND_OUT = [
  'redirect',
  'gone',
  'throttles-long',
  'throttles-zero',
  'drips',
  'floods',
  'resets',
  'slow-head',
  'hangs',
  'slow-tls',
  'wrong-host',
  'expired',
  'refused',
  'dns-rebinds',
];

const EVENTS = 5;

async function open(): Promise<Receivers> {
  const times = {
    ...TIMES,
    deadlineMs: 2_000,
    slowMs: 1_000,
    throttlesMs: 60_000,
    closedMs: 300,
    patienceMs: 500,
  };
  const receivers = await openReceivers(await makeAuthority(folder), { healthy: 1, times });
  opened.push(receivers);
  return receivers;
}

it('A naive sender is found out by each receiver that it treats wrongly', async () => {
  const receivers = await open();
  const sender = makeNaiveSender(receivers.nameServer.address);
  opened.push(sender);
  const { hostile, healthy } = receivers;
  receivers.begin();
  const sendAll = (id: string) => {
    for (const { url } of [...hostile, ...healthy]) void sender.send(url, id);
  };
  const verdicts = () => verdictsOf(hostile, healthy);
  let sent = 0;
  const found = await until(
    async () => {
      if (sent < EVENTS) sendAll(`event-${sent++}`);
      const broken = verdicts().filter(({ held }) => held === false);
      const isBroken = (name: string) => broken.some(({ receiver }) => receiver === name);
      return FOUND_OUT.every(isBroken) || undefined;
    },
    { everyMs: 700 },
  );
  expect(found, verdicts().map(verdictText).join('\n')).toBe(true);
});

it('A sender that is too impatient is found out by the receiver that is slow', async () => {
  const receivers = await open();
  const sender = makeNaiveSender(receivers.nameServer.address, 300);
  opened.push(sender);
  const slow = receivers.hostile.find(({ name }) => name === 'slow');
  await sender.send(slow?.url ?? '', 'first');
  const [verdict] = verdictsOf(slow ? [slow] : [], receivers.healthy);
  expect(verdict?.held).toBe(false);
});
