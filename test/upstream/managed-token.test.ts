/** Requests with the managed token: the second send after a refusal, and failed token fetches. */
import { afterEach, describe, expect, it } from 'vitest';
import {
  ACCOUNT,
  accountError,
  closeAll,
  DONE,
  forwardTo,
  GIVE,
  nftError,
  ok,
  pollFrom,
  wallet,
} from './rig.ts';
import { type Reply, type Script, TOKEN_PATH } from './service.ts';

afterEach(closeAll);

describe('After a 401 on the managed token', () => {
  const refused = nftError(401, 'Unauthorized');
  /** Refuses all tokens but the nth. */
  const acceptOnly =
    (n: number): Script =>
    ({ headers }) =>
      headers.authorization === `Bearer token-${n}` ? DONE : refused;

  it('a write is sent once more with another token, after that was recorded', async () => {
    const { forward, service } = await forwardTo(acceptOnly(2));
    const recorded: string[] = [];
    const forwarded = await forward({
      beforeResend: async (after) => {
        recorded.push(`${after} after ${service.count(GIVE)}`);
      },
    });
    expect(forwarded).toMatchObject({ outcome: { class: 'accepted' } });
    expect(recorded).toEqual(['unauthorized after 1']);
    expect(service.count(GIVE)).toBe(2);
  });

  it('a write is not sent a third time', async () => {
    const { forward, service } = await forwardTo(acceptOnly(99));
    expect(await forward()).toMatchObject({ outcome: { class: 'rejected', status: 401 } });
    expect(service.count(GIVE)).toBe(2);
    await forward();
    expect(service.count(GIVE)).toBe(3);
    expect(service.count(TOKEN_PATH)).toBe(2);
  });

  it('the first answer stands when the second send cannot be recorded', async () => {
    const { forward, service, logged } = await forwardTo(acceptOnly(2));
    const forwarded = await forward({ beforeResend: () => Promise.reject(new Error('db')) });
    expect(forwarded).toMatchObject({ outcome: { class: 'rejected', status: 401 } });
    expect(service.count(GIVE)).toBe(1);
    expect(logged.text).toContain('not sent again');
  });

  it('mayStillSend is called again just before the second send', async () => {
    const { forward, service } = await forwardTo(acceptOnly(2));
    let times = 0;
    const mayStillSend = () => {
      times += 1;
      return times === 1;
    };
    expect(await forward({ mayStillSend })).toMatchObject({ outcome: { class: 'not_sent' } });
    expect(service.count(GIVE)).toBe(1);
  });

  it('a lost second send is unknown', async () => {
    const { forward, service, clock } = await forwardTo(({ headers }) =>
      headers.authorization === 'Bearer token-1' ? refused : 'hang',
    );
    const forwarded = await forward({ deadlineAt: clock.now() + 1_000 });
    expect(forwarded).toMatchObject({ outcome: { class: 'unknown' } });
    expect(service.count(GIVE)).toBe(2);
  });

  it("a caller's own token is never replaced", async () => {
    const { forward, service } = await forwardTo(acceptOnly(1));
    const forwarded = await forward({ authorization: { own: 'Bearer mine' } });
    expect(forwarded).toMatchObject({ outcome: { class: 'rejected' } });
    expect(service.requests).toHaveLength(1);
  });

  it.each<[string, Reply]>([
    ['HTTP 401', [401, '']],
    ['body 401', refused],
    ['406/401', accountError(406, 401)],
  ])('a poll refused with %s is sent once more', async (_title, refusal) => {
    const { poll, service } = await pollFrom(({ headers }) =>
      headers.authorization === 'Bearer token-1' ? refusal : ok(wallet),
    );
    expect(await poll()).toMatchObject({ result: 'seen' });
    expect(service.count(ACCOUNT)).toBe(2);
  });
});

describe('Without a managed token', () => {
  it.each<[string, Reply, object, string]>([
    ['is refused', [401, ''], { class: 'not_sent', cause: 'no_client_token' }, 'unauthorized'],
    ['fails', [500, ''], { class: 'not_sent', cause: 'no_client_token' }, 'error'],
    ['is unreadable', [200, '{}'], { class: 'not_sent', cause: 'no_client_token' }, 'unreadable'],
    [
      'is throttled',
      [429, '', { 'retry-after': '9' }],
      { class: 'unavailable', reason: 'throttled', retryAt: Date.UTC(2026, 0, 1) + 9000 },
      'throttled',
    ],
    [
      'meets maintenance',
      [503, { status: 503, error: { code: 503, message: 'System under maintenance' } }],
      { class: 'unavailable', reason: 'maintenance' },
      'maintenance',
    ],
  ])('nothing is sent because its fetch %s', async (_title, reply, outcome, cause) => {
    const { forward, upstream, service, logged } = await forwardTo(
      () => DONE,
      () => reply,
    );
    const forwarded = await forward();
    expect(forwarded).toMatchObject({ outcome });
    expect(forwarded.answer?.status).toBe('reason' in outcome ? reply[0] : undefined);
    expect(await upstream.account('0x', 'steady')).toMatchObject({ cause });
    expect(service.count(GIVE) + service.count(ACCOUNT)).toBe(0);
    expect(logged.text).toContain('no client token');
    expect(logged.text).not.toContain('hush-hush');
  });

  it('nothing is sent by the deadline while its fetch hangs', async () => {
    const { forward, clock } = await forwardTo(
      () => DONE,
      () => 'hang',
    );
    const forwarded = await forward({ deadlineAt: clock.now() + 100 });
    expect(forwarded.outcome).toEqual({ class: 'not_sent', cause: 'no_client_token' });
  });
});

it('Neither the managed token nor the secret appears in the log', async () => {
  let calls = 0;
  const { upstream, poll, logged } = await pollFrom(() => {
    calls += 1;
    return calls === 1 ? [401, ''] : [429, '', { 'retry-after': '5' }];
  });
  await poll();
  await upstream.checkToken();
  expect(logged.text).toContain('throttled');
  expect(logged.text).not.toMatch(/token-\d|hush-hush|Basic [A-Za-z0-9]/);
});
