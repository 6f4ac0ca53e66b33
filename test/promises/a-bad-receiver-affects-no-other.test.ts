/**
 * Promise 7. A receiver that is slow, hangs, redirects, drips, floods or resets affects no other.
 */
import { expect, it } from 'vitest';
import type { Behaviour } from '../harness/receiver.ts';
import { useRig } from '../harness/rig.ts';

/** Fewer attempts at once than receivers that hang, and none of these ends before the test does. */
const rig = useRig({ webhooks: { concurrency_max: 4, attempt_timeout_ms: 600_000 } });
const HANGING = Array.from({ length: 8 }, (_, n) => `/hangs${n}`);

const BAD: Record<string, Behaviour> = {
  '/slow': { do: 'delay', ms: 3_000, status: 200 },
  ...Object.fromEntries(HANGING.map((path) => [path, { do: 'hang' }])),
  '/redirects': { do: 'answer', status: 302, headers: { location: '/healthy' } },
  '/drips': { do: 'drip', status: 200, everyMs: 50 },
  '/floods': { do: 'flood', status: 200 },
  '/resets': { do: 'reset', when: 'before_head' },
  '/refuses': { do: 'answer', status: 500 },
};

it('A healthy receiver gets every event while all others misbehave, and writes go on', async () => {
  const receiver = await rig.receiver();
  for (const [path, behaviour] of Object.entries(BAD)) {
    receiver.behave(behaviour, path);
    await rig.subscribe(path);
  }
  await rig.subscribe('/healthy');
  const answers = [];
  for (let n = 0; n < 10; n++) answers.push(await rig.app.give(rig.world.ada, 100 + n));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  for (const answer of answers) {
    const { id } = await rig.eventOf(answer, 'operation.accepted');
    for (;;) {
      const healthy = receiver.requests.filter(({ path }) => path === '/healthy');
      if (healthy.some(({ headers }) => headers['webhook-id'] === id)) break;
      await receiver.count(receiver.requests.length + 1);
    }
  }
  const tried = new Set(receiver.requests.map(({ path }) => path));
  expect(tried).toEqual(new Set(['/healthy', ...Object.keys(BAD)]));
  expect(HANGING.filter((path) => receiver.open(path) === 0)).toEqual([]);
});
