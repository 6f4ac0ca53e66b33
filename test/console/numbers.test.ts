/** Every number of the overview and of the inbox of drifts leads to the list that it counts. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { until } from '../harness/until.ts';
import { putOperations } from '../ledger/fixture.ts';
import { signIn } from './browsing.ts';

/** Run in the page: the numbers, and where they lead. */
const NUMBERS = `[...document.querySelectorAll('a.tile, .timeline li:has(> .pill)')].map((at) => ({
  count: (at.querySelector('b') ?? at.querySelector('.pill')).innerText,
  href: (at.closest('a') ?? at.querySelector('a')).getAttribute('href'),
}))`;
interface Shown {
  count: string;
  href: string;
}

describe('Every number', () => {
  const browser = useBrowser();
  const rig = useRig();
  const decide = async (owner: string, path: string, body: object) => {
    const key = { name: owner, owner, scopes: ['read', 'decide'] };
    const { json } = await rig.app.call('POST', '/api/keys', key);
    const answer = await rig.app.call('POST', path, body, { authorization: `Bearer ${json.key}` });
    expect(answer.status, answer.text).toBeLessThan(300);
  };

  /** Something of each kind that the overview counts. */
  async function arrange(): Promise<void> {
    const { sandbox, ada, ben, database } = rig.world;
    const { owner } = database;
    const receiver = await rig.receiver();
    receiver.answer(500, {}, '/broken');
    await rig.observe(ada, ben);
    await rig.subscribe('/broken', ['wallet.*']);
    for (const addr of [ada, ben]) {
      sandbox.control.setWallet(addr, { delta: 7n });
      await rig.app.until((e) => e.type === 'wallet.drift_opened' && e.data.addr === addr);
    }
    const [drift] = (await rig.app.call('GET', '/api/drifts')).json.data;
    const proposal = { proposal: 'book', reason: 'a test' };
    await decide('ann', `/api/drifts/${drift.id}/propose`, proposal);
    await rig.eventOf(await rig.app.give(ada, 5), 'operation.settled');
    const idOf = (n: number) => `op_019b7000-0000-7000-8000-00000000000${n}`;
    await putOperations(owner, [
      { id: idOf(1), kind: 'give', state: 'undecided', toAddr: ada, amount: 1n },
      { id: idOf(2), kind: 'give', state: 'undecided', toAddr: ada, amount: 2n },
    ]);
    const outcome = { outcome: 'executed', reason: 'a test' };
    await decide('bob', `/api/operations/${idOf(1)}/decide`, outcome);
    const days = { from: '2025-12-01', to: '2025-12-02' };
    await decide('cid', '/api/periods/close', days);
    await until(async () => {
      const rows = await owner.sql`
        with gone as (delete from tallyhook.pending_deliveries where attempts > 0 returning *)
        insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, state,
          attempts, fence, finished_at)
        select id, created_at, endpoint_id, event_id, event_type, 'exhausted', attempts, fence,
          now()
        from gone returning id`;
      return rows.length > 0 ? true : undefined;
    });
    await owner.sql`
      insert into tallyhook.wallets (key, addr, verdict, observed_at)
      values ('0xstale', '0xstale', 'explained', '2026-01-01')`;
  }

  async function lengthAt(page: Page, url: string): Promise<number> {
    await page.goto(url);
    await page.locator('tbody tr').first().waitFor();
    const more = page.getByRole('button', { name: 'More', exact: true });
    while ((await more.count()) > 0) await more.first().click();
    return page.locator('table').first().locator('tbody tr').count();
  }

  it('Every number leads to a list of that length, and what failed for good is given up there', async () => {
    await arrange();
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    const numbersAt = async (path: string) => {
      await open(path);
      await page.locator('.tile').first().waitFor();
      const shown = await page.evaluate<Shown[]>(NUMBERS);
      return shown.filter(({ count, href }) => /^\d+$/.test(count) && !href.startsWith('#'));
    };
    const overview = await numbersAt('/');
    await check('everything waits');
    const paths = overview.map(({ href }) => href);
    for (const path of ['state=undecided', 'proposed=true', 'stale=true', 'failing=true'])
      expect(paths.some((href) => href.includes(path))).toBe(true);
    // A period that has to be closed is in no list yet.
    const lists = paths.filter((href) => href !== '/periods');
    for (const [from, href] of [
      ...lists.map((to) => ['/', to] as const),
      ...(await numbersAt('/drifts')).map(({ href: to }) => ['/drifts', to] as const),
    ])
      await expect
        .poll(async () => {
          const shown = (await numbersAt(from)).find((one) => sameList(one.href, href));
          if (shown?.count === '0') return true;
          return String(await lengthAt(page, `${rig.daemon.url}${href}`)) === shown?.count;
        })
        .toBe(true);
    await open('/');
    await page.getByRole('link', { name: 'deliveries failed for good' }).click();
    await page.getByRole('button', { name: /^Give up \d+$/ }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('No delivery matches').waitFor();
    expect((await rig.app.call('GET', '/api/status')).json.webhooks.deliveries_exhausted).toBe(0);
  });
});

/** Apart from the time since when drifts count as ended. */
function sameList(a: string, b: string): boolean {
  const plain = (href: string) => href.replace(/ended_since=.*/, '');
  return plain(a) === plain(b);
}
