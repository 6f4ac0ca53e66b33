/** Overview and operations in a browser: from an alarm to a decision by two owners. */
import { describe, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { until } from '../harness/until.ts';
import { SCREENS, SECOND, signIn, tabTo } from './browsing.ts';

describe('The console', () => {
  const browser = useBrowser();
  const rig = useRig();

  /** A key of another person. */
  const keyOf = async (owner: string): Promise<string> => {
    const scopes = ['read', 'decide'];
    const made = await rig.app.call('POST', '/api/keys', { name: owner, owner, scopes });
    expect(made.status, made.text).toBe(201);
    return made.json.key;
  };

  it('A key that is not valid is refused where it is entered, and nothing is shown', async () => {
    const page = await browser().newPage();
    await page.goto(rig.daemon.url);
    await page.fill('input[name=key]', 'thk_wrong-wrong-wrong-wrong-wrong-wrong-wrong');
    await page.click('button[type=submit]');
    await page.getByRole('alert').first().waitFor();
    expect(await page.locator('.view').count()).toBe(0);
  });

  it('An unknown operation leads from its alarm to a decision by two owners', async () => {
    const { sandbox, ada } = rig.world;
    // No balance tells which of two equal gives was applied.
    sandbox.control.addFault({ kind: 'lost_answer', contains: '777001' });
    const lost = await rig.app.give(ada, 777_001, { 'tallyhook-reference': 'order-1' });
    expect(lost.status, lost.text).toBe(504);
    sandbox.control.setWallet(ada, { delta: 5n });
    const id = String(lost.headers['tallyhook-operation']);
    const ann = await signIn(browser(), rig.daemon.url, await keyOf('ann'));
    const alarm = ann.page.getByRole('link', { name: 'operations to be decided by people' });
    await alarm.waitFor();
    await ann.check('an operation that waits for people');
    await alarm.click();
    await ann.page
      .getByRole('row')
      .filter({ hasText: 'order-1' })
      .getByRole('link')
      .first()
      .click();
    // The balance of `ada` changed by 5 more than the write.
    const evidence = ann.page.locator('section', { hasText: 'Evidence' });
    await evidence.getByText(/before the send, and held .*\+777 006/).waitFor();
    await evidence.getByText(/executed \(\+777 001\), \+5 stays unexplained/).waitFor();
    await evidence.getByText(/if not, \+777 006 stays unexplained/).waitFor();
    await ann.page.getByRole('button', { name: 'Propose: executed', exact: true }).click();
    await ann.page.fill('dialog textarea', 'looked up at the service');
    await ann.check('the proposal of an outcome');
    await ann.page.locator('dialog button[type=submit]').click();
    await ann.page
      .getByText(/ann proposed/)
      .first()
      .waitFor();
    const ben = await signIn(browser(), rig.daemon.url, await keyOf('ben'), SECOND);
    await ben.page.getByRole('link', { name: 'outcome proposals to be approved' }).click();
    await ben.page.getByText('Only with a proposal that waits').waitFor();
    await ben.page.locator('tbody a').first().click();
    await ben.page.getByRole('button', { name: /^Approve/ }).click();
    await ben.check('the approval of an outcome');
    await ben.page.locator('dialog button[type=submit]').click();
    await ben.page.getByText(/ben approved it/).waitFor();
    await ben.check('a decided operation');
    const { json } = await makeApp(() => rig.daemon.url).call('GET', `/api/operations/${id}`);
    expect(json.decisions.at(-1)).toMatchObject({ proposed_by: 'ann', approved_by: 'ben' });
  });

  it('Of a lost answer that polls resolved, the balances that prove the outcome are in words', async () => {
    const { sandbox, ada, ben } = rig.world;
    await rig.observe(ada, ben);
    sandbox.control.addFault({ kind: 'lost_answer', contains: '"amount":8' });
    const lost = await rig.app.transfer(ada, ben, 8);
    const id = String(lost.headers['tallyhook-operation']);
    await rig.app.until((e) => e.type === 'operation.resolved' && e.data.operation_id === id);
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open(`/operations/${id}`);
    await page.getByText('How it is known').waitFor();
    const proof = page.getByText(/held .* without the open writes it would hold/);
    expect(await proof.count()).toBeGreaterThan(1);
    expect(await page.getByText('evidence: ').count()).toBe(0);
    await check('an operation with evidence');
  });

  it('An operation leads in words from its intent to observations, ledger and receivers', async () => {
    const { ada } = rig.world;
    await rig.subscribe('/all', ['operation.*']);
    const answer = await rig.app.give(ada, 6_161);
    const { data } = await rig.eventOf(answer, 'operation.settled');
    const path = `/api/operations/${data.operation_id}/timeline`;
    const timeline = await until(async () => {
      const { json } = await rig.app.call('GET', path);
      const sent = json.events.flatMap(({ deliveries }: { deliveries: object[] }) => deliveries);
      const isDone = sent.every(({ state }: { state: string }) => state === 'delivered');
      return json.postings.length > 0 && sent.length >= 2 && isDone ? json : undefined;
    });
    expect(timeline.events.map(({ type }: { type: string }) => type)).toEqual([
      'operation.accepted',
      'operation.settled',
    ]);
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open(`/operations/${data.operation_id}`);
    const lines = page.locator('.timeline li');
    await lines.filter({ hasText: 'observed: wallet' }).first().waitFor();
    await lines
      .filter({ hasText: /posted as give, transaction \d+: operator 1: .*\+6 161/ })
      .waitFor();
    await lines.filter({ hasText: 'event operation.settled' }).waitFor();
    const delivery = lines.filter({ hasText: 'webhook of operation.settled' });
    await delivery.getByText('delivered').waitFor();
    await check('an operation from intent to delivery');
    await delivery.getByRole('link').first().click();
    await page.getByRole('heading', { name: 'operation.settled' }).waitFor();
  });

  it('Operations are found by idempotency key and by time, and the filters are in the address', async () => {
    const key = 'find-me-0123456789abcdef';
    await rig.app.give(rig.world.ada, 3_131, { 'idempotency-key': key });
    await rig.app.give(rig.world.ada, 3_132);
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/operations');
    const rows = page.locator('tbody tr');
    await rows.filter({ hasText: '3 132' }).waitFor();
    await page.getByText('More filters').click();
    await page.fill('input[name=key]', key);
    await page.getByRole('button', { name: 'Find' }).click();
    await rows.filter({ hasText: '3 132' }).waitFor({ state: 'detached' });
    await rows.filter({ hasText: '3 131' }).waitFor();
    await page.reload();
    await rows.filter({ hasText: '3 131' }).waitFor();
    await page.fill('input[name=until]', '2020-01-01T00:00:00');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('No operation matches').waitFor();
    const { searchParams } = new URL(page.url());
    expect(searchParams.get('key')).toBe(key);
    expect(new Date(searchParams.get('until') ?? '').getFullYear()).toBeLessThan(2021);
  });

  it('Writes are frozen and allowed again, with a reason', async () => {
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/');
    await page.getByRole('button', { name: 'Freeze writes' }).click();
    await page.fill('dialog textarea', 'a test');
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('Writes are frozen by').waitFor();
    await page.getByRole('button', { name: 'Allow writes again' }).click();
    await page.fill('dialog textarea', 'the test is over');
    await page.locator('dialog button[type=submit]').click();
    await page.getByRole('button', { name: 'Freeze writes' }).waitFor();
  });

  it('A person with a keyboard alone signs in, finds an operation, and freezes and allows writes', async () => {
    await rig.app.give(rig.world.ada, 4_242, { 'tallyhook-reference': 'by-keyboard' });
    const page = await browser().newPage();
    const { keyboard } = page;
    await page.goto(rig.daemon.url);
    await tabTo(page, /A key with the scope read/);
    await keyboard.type(ADMIN_KEY);
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await tabTo(page, /^Operations$/);
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Operations' }).waitFor();
    await tabTo(page, /^Reference/);
    await keyboard.type('by-keyboard');
    await keyboard.press('Enter');
    await page.getByRole('row').filter({ hasText: 'by-keyboard' }).waitFor();
    await tabTo(page, /^row: /);
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: /give/ }).waitFor();
    await tabTo(page, /^Tallyhook$/);
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await tabTo(page, /^Freeze writes$/);
    await keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    // The focus is where it was, so that Enter opens it again.
    await keyboard.press('Enter');
    await page.locator('dialog textarea:focus').waitFor();
    await keyboard.type('a test with the keyboard');
    await tabTo(page, /^Freeze writes$/);
    await keyboard.press('Enter');
    await page.getByText('Writes are frozen by').waitFor();
    await tabTo(page, /^Allow writes again$/);
    await keyboard.press('Enter');
    await page.locator('dialog textarea:focus').waitFor();
    await keyboard.type('the test is over');
    await tabTo(page, /^Allow writes again$/);
    await keyboard.press('Enter');
    await page.getByRole('button', { name: 'Freeze writes' }).waitFor();
    await page.reload();
    await tabTo(page, /^Skip to the content$/);
    await keyboard.press('Enter');
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('main');
  });

  it.each(SCREENS)('Its pages have no fault at $width px, $scheme', async (screen) => {
    const { open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY, screen);
    const { json } = await rig.app.call('GET', '/api/operations?limit=1');
    for (const path of ['/', '/operations', `/operations/${json.data[0]?.id}`]) {
      await open(path);
      await check(path);
    }
  });
});
