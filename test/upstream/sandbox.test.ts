/** The client against the sandbox: the class of a write agrees with what the service applied. */
import { afterEach, describe, expect, it } from 'vitest';
import type { FaultInput } from '../../src/sandbox/faults/kinds.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { ForwardRequest } from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeAll, upstreamTo } from './rig.ts';
import { closeLater } from './service.ts';

afterEach(closeAll);

async function begin(switches: Parameters<typeof startSandbox>[0]['switches'] = {}) {
  const clock = manualClock();
  const sandbox = closeLater(
    await startSandbox({
      seed: 1,
      clientId: 'client',
      clientSecret: 'hush-hush',
      clock,
      switches,
    }),
  );
  const { upstream } = await upstreamTo(sandbox.url, clock);
  const { members } = sandbox.control.state();
  const addr = members[0]?.addr ?? 'none';
  /** Sends a write with half a second for the answer. */
  const write = (path: string, host: 'base' | 'tx', body: string, type: string) =>
    upstream.forward({
      method: 'POST',
      path,
      host,
      headers: [['content-type', type]],
      body: Buffer.from(body),
      authorization: { managed: true },
      family: host === 'tx' ? 'transaction' : 'nft',
      deadlineAt: clock.now() + 500,
    } satisfies ForwardRequest);
  const give = (amount: number) => {
    const body = JSON.stringify({ toAddr: addr, amount, reasonType: 'gift' });
    return write('/v1/app/token/operations/1/give', 'tx', body, 'application/json');
  };
  const mint = (tokenURI: string) => {
    const form = new URLSearchParams({ toAddr: addr, tokenURI });
    const path = '/v1/chain/erc721/1/mint-sequential';
    return write(path, 'base', String(form), 'application/x-www-form-urlencoded');
  };
  return { clock, sandbox, upstream, addr, give, mint };
}

describe('The client', () => {
  it('reads wallets, tokens, pages, maintenance and its own token after writes', async () => {
    const { sandbox, upstream, addr, give, mint, clock } = await begin();
    sandbox.control.setWallet(addr, { amt_token: 2n ** 70n });
    expect(await give(5)).toMatchObject({ outcome: { class: 'accepted' } });
    const wallet = await upstream.account(addr, 'steady');
    expect(wallet).toMatchObject({ record: { balance: 2n ** 70n + 5n, status: 1 } });
    const { outcome } = await mint('ipfs://one');
    const tokenId = outcome.class === 'accepted' ? outcome.tokenId : undefined;
    expect(tokenId).toBeTypeOf('bigint');
    clock.advance(600_000);
    const token = await upstream.token(1n, tokenId ?? 0n, 'pending');
    const txHash = outcome.class === 'accepted' ? outcome.txHash : undefined;
    expect(token).toMatchObject({ record: { status: 1, lastTxHash: txHash, uri: 'ipfs://one' } });
    const page = await upstream.tokens(1n, { ownerAddr: addr, perPage: 100 }, 'steady');
    expect(page).toMatchObject({ result: 'seen', record: { perPage: 100, page: 1 } });
    clock.advance(1000);
    expect(await upstream.maintenance()).toMatchObject({ record: { status: 'ACTIVE' } });
    expect(await upstream.checkToken()).toMatchObject({ record: { active: true } });
  });

  it.each([404, 422] as const)('reads %i as an absent token', async (absent_token) => {
    const { upstream } = await begin({ absent_token });
    expect(await upstream.token(1n, 10n ** 30n, 'steady')).toMatchObject({ result: 'absent' });
  });

  it.each(['s', 'ms', 'min', 'h'] as const)(
    'renews its token once a day when expires_in is in %s',
    async (unit) => {
      const { upstream, clock, sandbox, addr } = await begin({ expires_in_unit: unit });
      const observation = () => upstream.account(addr, 'steady');
      await observation();
      clock.advance(20 * 3_600_000);
      await observation();
      clock.advance(4 * 3_600_000);
      expect(await observation()).toMatchObject({ result: 'seen' });
      const fetches = sandbox.control.requests().filter(({ path }) => path === '/v1/oauth/token');
      expect(fetches).toHaveLength(2);
    },
  );

  it('reports maintenance for writes and polls', async () => {
    const { sandbox, upstream, addr, give, clock } = await begin();
    await give(1);
    clock.advance(1000);
    sandbox.control.maintenance({ state: 'on' });
    const outcome = { class: 'unavailable', reason: 'maintenance' };
    expect(await give(1)).toMatchObject({ outcome, answer: { status: 503 } });
    expect(await upstream.account(addr, 'steady')).toMatchObject({ cause: 'maintenance' });
    clock.advance(1000);
    expect(await upstream.maintenance()).toMatchObject({ record: { status: 'INACTIVE' } });
  });
});

describe('With a fault', () => {
  const faults: FaultInput[] = [
    { kind: 'lost_answer' },
    { kind: 'lost_answer', reset: true },
    { kind: 'dropped' },
    { kind: 'dropped', reset: true },
    { kind: 'truncated' },
    { kind: 'truncated', reset: true },
    { kind: 'garbled' },
    { kind: 'delay', delay_ms: 60_000 },
    { kind: 'throttle', retry_after: 'date', retry_after_s: 60 },
    { kind: 'throttle', retry_after: 'none' },
    ...[500, 502, 504].flatMap((status): FaultInput[] => [
      { kind: 'status', status, applied: true },
      { kind: 'status', status, applied: false, body: '<html>' },
    ]),
    { kind: 'status', status: 503, applied: true, body: '<html>busy</html>' },
    ...['999', '499', '997', '401', '198', '295'].map(
      (code): FaultInput => ({ kind: 'error', code }),
    ),
    { kind: 'error', code: '999', applied: true },
    { kind: 'error', code: '499', applied: true },
  ];

  it.each(faults)('%j, no applied write is classified as refused', async (fault) => {
    const { sandbox, give } = await begin();
    await give(1);
    const before = sandbox.control.effects().length;
    sandbox.control.addFault({ ...fault, endpoint: 'give' });
    const { outcome } = await give(7);
    const effects = sandbox.control.effects().length - before;
    expect(effects).toBeLessThanOrEqual(1);
    if (outcome.class === 'accepted') expect(effects).toBe(1);
    else if (outcome.class !== 'unknown') expect(effects).toBe(0);
    if (fault.kind === 'throttle') expect(outcome.class).toBe('unavailable');
  });
});
