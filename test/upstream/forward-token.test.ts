/** Writes with the managed token: the one repetition there is, and doing without. */
import { afterEach, describe, expect, it } from 'vitest';
import { closeRaw } from './raw-service.ts';
import { closeAll, type Reply, type Script, TOKEN_PATH } from './scripted-service.ts';
import { DONE, forwardTo, GIVE } from './writes.ts';

afterEach(async () => {
  await closeAll();
  await closeRaw();
});

describe('after a 401 on the managed token', () => {
  const refused: Reply = [
    200,
    { status: 401, error: [{ message: 'no', field: '', validation: '' }] },
  ];
  const untilToken =
    (n: number): Script =>
    ({ headers }) =>
      headers.authorization === `Bearer token-${n}` ? DONE : refused;

  it('a write is sent once more with another token, after that was recorded', async () => {
    const { forward, service } = await forwardTo(untilToken(2));
    const told: string[] = [];
    const forwarded = await forward({
      beforeResend: async (after) => {
        told.push(`${after} at ${service.count(GIVE)}`);
      },
    });
    expect(forwarded).toMatchObject({ outcome: { class: 'accepted' }, sends: 2 });
    expect(told).toEqual(['unauthorized at 1']);
    expect(service.count(GIVE)).toBe(2);
  });

  it('it is not sent a third time', async () => {
    const { forward, service } = await forwardTo(untilToken(99));
    const forwarded = await forward();
    expect(forwarded).toMatchObject({ outcome: { class: 'rejected', status: 401 }, sends: 2 });
    expect(service.count(GIVE)).toBe(2);
    expect((await forward()).sends).toBe(1);
    expect(service.count(TOKEN_PATH)).toBe(2);
  });

  it('the first answer stands when the second send cannot be recorded', async () => {
    const { forward, service, logged } = await forwardTo(untilToken(2));
    const forwarded = await forward({ beforeResend: () => Promise.reject(new Error('db')) });
    expect(forwarded).toMatchObject({ outcome: { class: 'rejected', status: 401 }, sends: 1 });
    expect(service.count(GIVE)).toBe(1);
    expect(logged.text).toContain('not sent again');
  });

  it('the second send is asked for again just before its first byte', async () => {
    const { forward, service } = await forwardTo(untilToken(2));
    let times = 0;
    const mayStillSend = () => {
      times += 1;
      return times === 1;
    };
    const forwarded = await forward({ mayStillSend });
    expect(forwarded).toMatchObject({ outcome: { class: 'not_sent' }, sends: 1 });
    expect(service.count(GIVE)).toBe(1);
  });

  it('a second send that is lost is unknown', async () => {
    const { forward } = await forwardTo(({ headers }) =>
      headers.authorization === 'Bearer token-1' ? refused : 'hang',
    );
    const forwarded = await forward({ deadlineAt: Date.UTC(2026, 0, 1) + 200 });
    expect(forwarded).toMatchObject({ outcome: { class: 'unknown' }, sends: 2 });
  });

  it('the own token of a caller is never replaced', async () => {
    const { forward, service } = await forwardTo(untilToken(1));
    const forwarded = await forward({ authorization: { own: 'Bearer mine' } });
    expect(forwarded).toMatchObject({ outcome: { class: 'rejected' }, sends: 1 });
    expect(service.asked).toHaveLength(1);
  });
});

describe('without a managed token', () => {
  it.each<[string, Reply, object]>([
    ['is refused', [401, ''], { class: 'not_sent', cause: 'no_client_token' }],
    ['fails', [500, ''], { class: 'not_sent', cause: 'no_client_token' }],
    ['is unreadable', [200, '{}'], { class: 'not_sent', cause: 'no_client_token' }],
    [
      'is throttled',
      [429, '', { 'retry-after': '9' }],
      { class: 'unavailable', reason: 'throttled', retryAt: Date.UTC(2026, 0, 1) + 9000 },
    ],
    [
      'meets maintenance',
      [503, { status: 503, error: { code: 503, message: 'System under maintenance' } }],
      { class: 'unavailable', reason: 'maintenance' },
    ],
  ])('because its fetch %s nothing is sent', async (_what, reply, outcome) => {
    const { forward, service } = await forwardTo(
      () => DONE,
      () => reply,
    );
    const forwarded = await forward();
    expect(forwarded).toMatchObject({ outcome, sends: 0 });
    expect(forwarded.answer?.status).toBe('reason' in outcome ? reply[0] : undefined);
    expect(service.count(GIVE)).toBe(0);
  });

  it('because its fetch hangs nothing is sent by the deadline', async () => {
    const { forward } = await forwardTo(
      () => DONE,
      () => 'hang',
    );
    const forwarded = await forward({ deadlineAt: Date.UTC(2026, 0, 1) + 100 });
    expect(forwarded.outcome).toEqual({ class: 'not_sent', cause: 'no_client_token' });
  });
});
