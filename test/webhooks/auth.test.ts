/** Authentication to receivers beside headers: tokens of OAuth 2, and client certificates. */
import { readFileSync } from 'node:fs';
import { createServer as createSecureServer, type Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Authority, type Certificate, makeAuthority } from '../harness/certificates.ts';
import { useFolder } from '../harness/folder.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const SECOND = 1_000;
const rig = useRig();
const SECRET = 'k3y: of/oauth2';

const lastAttempt = async (endpointId: string) => {
  const [delivery] = await rig.deliveriesOf(endpointId);
  return (await rig.webhooks.listAttempts(delivery?.id ?? '')).at(-1);
};

describe('A token of OAuth 2', () => {
  const oauth2 = (more = {}) => ({
    tokenUrl: `${rig.receiver.url}/token`,
    clientId: 'the client',
    clientSecret: SECRET,
    scope: 'webhooks write',
    ...more,
  });
  let given = 0;
  const giveToken = (more = {}) => {
    const body = { access_token: `token-${++given}-of-oauth2`, token_type: 'Bearer', ...more };
    const answer = { do: 'answer', status: 200, body: JSON.stringify(body) } as const;
    rig.receiver.behave(answer, '/token');
    return body.access_token;
  };
  const asked = () => rig.receiver.requests.filter(({ path }) => path === '/token');
  const sent = () => rig.receiver.requests.filter(({ path }) => path === '/hook');
  const usedTokens = () => sent().map(({ headers }) => headers.authorization);
  beforeEach(() => {
    given = 0;
  });

  it('A token of OAuth 2 is asked for once by client credentials, and used until shortly before its end', async () => {
    const token = giveToken({ expires_in: 600 });
    await rig.subscribe('/hook', { auth: { oauth2: oauth2() } });
    await rig.emit(...walletEvents(20));
    await rig.deliver();
    expect(asked()).toHaveLength(1);
    const login = Buffer.from('the+client:k3y%3A+of%2Foauth2').toString('base64');
    expect(asked()[0]).toMatchObject({
      method: 'POST',
      headers: {
        authorization: `Basic ${login}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials&scope=webhooks+write',
    });
    expect(new Set(usedTokens())).toEqual(new Set([`Bearer ${token}`]));
    expect(sent()).toHaveLength(20);
    rig.clock.advance(569 * SECOND);
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(asked()).toHaveLength(1);
    rig.clock.advance(2 * SECOND);
    const next = giveToken();
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(asked()).toHaveLength(2);
    expect(usedTokens().at(-1)).toBe(`Bearer ${next}`);
  });

  it('may be asked for with the secret in the body, for an audience', async () => {
    giveToken();
    const more = { clientAuthentication: 'body', audience: 'hooks', scope: undefined } as const;
    await rig.subscribe('/hook', { auth: { oauth2: oauth2(more) } });
    await rig.emit(walletEvent());
    await rig.deliver();
    const [{ body = '', headers = {} } = {}] = asked();
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      grant_type: 'client_credentials',
      audience: 'hooks',
      client_id: 'the client',
      client_secret: SECRET,
    });
    expect(headers.authorization).toBeUndefined();
  });

  it('that the receiver answers with 401 is replaced in the same attempt', async () => {
    const first = giveToken();
    const { endpoint } = await rig.subscribe('/hook', { auth: { oauth2: oauth2() } });
    await rig.emit(walletEvent());
    await rig.deliver();
    const second = giveToken();
    rig.receiver.answer(401, {}, '/hook');
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(usedTokens()).toEqual([`Bearer ${first}`, `Bearer ${first}`, `Bearer ${second}`]);
    expect(await lastAttempt(endpoint.id)).toMatchObject({ n: 1, status: 401, result: 'retry' });
    // The new one was refused too, so the next attempt asks again, and does so once.
    const third = giveToken();
    rig.receiver.answer(200, {}, '/hook');
    rig.clock.advance(6 * SECOND);
    await rig.deliver();
    expect(usedTokens().at(-1)).toBe(`Bearer ${third}`);
    expect(asked()).toHaveLength(3);
    expect(await lastAttempt(endpoint.id)).toMatchObject({ n: 2, status: 200 });
  });

  it.each([
    [400, { error: 'invalid_client', echo: SECRET }, 'token_refused', 'invalid_client'],
    [503, {}, 'token_unreachable', null],
    [200, { access_token: '' }, 'token_unreadable', null],
    [200, { access_token: 'x', token_type: 'mac' }, 'token_unreadable', null],
  ])('that is not given (%i, %j) is the error %s', async (status, body, error, code) => {
    rig.receiver.behave({ do: 'answer', status, body: JSON.stringify(body) }, '/token');
    const { endpoint } = await rig.subscribe('/hook', { auth: { oauth2: oauth2() } });
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(sent()).toEqual([]);
    const attempt = await lastAttempt(endpoint.id);
    expect(attempt).toMatchObject({ status: null, error, result: 'retry' });
    expect(JSON.parse(attempt?.responseBody ?? '')).toEqual({
      token_status: status,
      token_error: code,
    });
  });

  it('is never shown, nor the secret it is asked for with', async () => {
    const token = giveToken();
    const echo = JSON.stringify({ got: `Bearer ${token}`, secret: SECRET });
    rig.receiver.behave({ do: 'answer', status: 500, body: echo }, '/hook');
    const created = await rig.subscribe('/hook', { auth: { oauth2: oauth2() } });
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(created.endpoint.auth).toEqual(['oauth2']);
    const rows = await rig.database.db.sql`select * from tallyhook.endpoints`;
    const shown = JSON.stringify([
      created,
      await lastAttempt(created.endpoint.id),
      await rig.webhooks.getEndpoint(created.endpoint.id),
      rig.logged,
      rows,
    ]);
    expect(shown).toContain('[secret]');
    expect(shown).not.toContain(token);
    expect(shown).not.toContain(SECRET);
  });

  it('is not asked for at an address that is not allowed, or not any more', async () => {
    const refused = oauth2({ tokenUrl: 'https://10.0.0.1/token' });
    await expect(rig.subscribe('/hook', { auth: { oauth2: refused } })).rejects.toMatchObject({
      code: 'url_refused',
    });
    const { endpoint } = await rig.subscribe('/hook', { auth: { oauth2: oauth2() } });
    await rig.emit(walletEvent());
    await rig.deliver(rig.another({ allowCidrs: [] }));
    expect(asked()).toEqual([]);
    expect(await lastAttempt(endpoint.id)).toMatchObject({ error: 'blocked_address' });
  });

  it('and its settings are removed when the URL gets another origin without them', async () => {
    const { endpoint } = await rig.subscribe('/hook', { auth: { oauth2: oauth2() } });
    const change = (input: object) => rig.webhooks.updateEndpoint(endpoint.id, input);
    expect(await change({ url: `${rig.receiver.url}/other` })).toMatchObject({
      removedAuth: false,
      endpoint: { auth: ['oauth2'] },
    });
    const url = 'http://127.0.0.1:4569/';
    expect(await change({ url })).toMatchObject({ removedAuth: true, endpoint: { auth: [] } });
    expect(await change({ auth: { oauth2: oauth2() } })).toMatchObject({
      endpoint: { auth: ['oauth2'] },
    });
    expect(await change({ auth: null })).toMatchObject({ endpoint: { auth: [] } });
  });
});

describe('A client certificate', () => {
  const folder = useFolder();
  let authority: Authority;
  let ca: string;
  let own: Certificate;
  let other: Certificate;
  let server: Server;
  let url: string;
  const clients: string[] = [];
  beforeAll(async () => {
    authority = await makeAuthority(folder);
    ca = readFileSync(authority.certFile, 'utf8');
    own = await authority.issue('tallyhook', { usage: 'clientAuth' });
    other = await authority.issue('other', { usage: 'clientAuth', isSelfSigned: true });
    const { cert, key } = await authority.issue('receiver');
    const options = { cert, key, ca, requestCert: true, rejectUnauthorized: true };
    server = createSecureServer(options, (incoming, outgoing) => {
      clients.push(String((incoming.socket as TLSSocket).getPeerCertificate().subject.CN));
      incoming.resume().on('end', () => outgoing.end('ok'));
    });
    url = `https://localhost:${await listen(server)}/`;
  });
  afterAll(() => closeServer(server));
  const tlsOf = ({ cert, key }: Certificate) => ({ certificate: cert, privateKey: key, ca });
  const clientOnly = () => ({ ...tlsOf(own), ca: undefined });
  const create = (tls: object) => rig.webhooks.createEndpoint({ url, auth: { tls } }, 'ann');

  it('A client certificate reaches a receiver of a private authority that demands it, and is not shown', async () => {
    const created = await create(tlsOf(own));
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(clients.splice(0)).toEqual(['tallyhook']);
    expect(await lastAttempt(created.endpoint.id)).toMatchObject({ status: 200 });
    const shown = await rig.webhooks.getEndpoint(created.endpoint.id);
    expect(shown).toMatchObject({
      auth: ['client_certificate', 'authority'],
      certificateExpiresAt: Date.UTC(2099, 11, 31),
    });
    const rows = await rig.database.db.sql`select * from tallyhook.endpoints`;
    expect(JSON.stringify([created, shown, rows, rig.logged])).not.toContain('PRIVATE KEY');
  });

  it.each([
    ['that is missing', /^tls_client_certificate$/, () => ({ ca })],
    // Node's server closes the connection without an alert.
    ['of another authority', /^(tls_client_certificate|reset)$/, () => tlsOf(other)],
    ['alone, with a receiver of a private authority,', /^tls_unknown_ca$/, () => clientOnly()],
  ])('%s is an attempt error (%s)', async (_, error, tls) => {
    const { endpoint } = await create(tls());
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(await lastAttempt(endpoint.id)).toMatchObject({
      status: null,
      error: expect.stringMatching(error),
    });
    expect(clients.splice(0)).toEqual([]);
  });

  it('is changed without a restart, and belongs to the connections of its endpoint', async () => {
    const { endpoint } = await create(tlsOf(own));
    await rig.emit(walletEvent());
    await rig.deliver();
    const renewed = await authority.issue('renewed', { usage: 'clientAuth' });
    await rig.webhooks.updateEndpoint(endpoint.id, { auth: { tls: tlsOf(renewed) } });
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(clients.splice(0)).toEqual(['tallyhook', 'renewed']);
    const plain = await rig.webhooks.createEndpoint({ url }, 'ann');
    await rig.emit(walletEvent());
    await rig.deliver();
    expect(await lastAttempt(plain.endpoint.id)).toMatchObject({ status: null });
    expect(clients.splice(0)).toEqual(['renewed']);
  });

  it.each([
    ['another key', () => ({ ...tlsOf(own), privateKey: other.key })],
    ['no key', () => ({ certificate: own.cert })],
    ['text instead of a certificate', () => ({ ...tlsOf(own), certificate: 'text' })],
    ['text instead of an authority', () => ({ ca: 'text' })],
    ['nothing', () => ({})],
  ])('with %s is refused when it is saved', async (_, tls) => {
    await expect(create(tls())).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('needs a URL of https', async () => {
    const input = { url: rig.receiver.url, auth: { tls: tlsOf(own) } };
    await expect(rig.webhooks.createEndpoint(input, 'ann')).rejects.toThrow(/https/);
  });
});
