/** Whether a pass is worth a wake-up is known without a look, and no wake-up is lost for it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRig, type Rig, walletEvent } from './house.ts';

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
});
afterAll(() => rig.close());

test('Where nobody subscribes nothing stirs; asking does not make it forget what was made', async () => {
  const { webhooks } = rig;
  await rig.emit(walletEvent());
  expect(webhooks.isStirring()).toBe(false);
  await webhooks.createEndpoint({ url: 'http://127.0.0.1:8099/hook' }, 'ann');
  await rig.emit(walletEvent());
  // Whoever asks before the commit must not take the news from whoever asks after it.
  expect([webhooks.isStirring(), webhooks.isStirring()]).toEqual([true, true]);
});
