/** Wake-ups that come together are one, and the last is never lost. */
import { describe, expect, test } from 'vitest';
import { gently } from '../../src/daemon/workers/coalesce.ts';

describe('A wake-up', () => {
  test('Wakes at once, and those within the gap after it are one more', async () => {
    let woken = 0;
    const wake = gently(20, () => {
      woken++;
    });
    for (let i = 0; i < 100; i++) wake();
    expect(woken).toBe(1);
    await expect.poll(() => woken).toBe(2);
    await expect
      .poll(() => {
        wake();
        return woken;
      })
      .toBeGreaterThan(2);
  });
});
