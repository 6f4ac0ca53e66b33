/**
 * Sign-in to the console by OpenID Connect, with a provider that is not ours (oidc-provider) and a
 * real browser; and the rule that makes a person of its claims.
 */
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { personOf, type SignInRule } from '../../src/console/person.ts';
import { makeApp } from '../harness/app.ts';
import { useBrowser } from '../harness/browser.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from '../harness/daemon.ts';
import { closeServer, freePort, listen } from '../harness/listen.ts';

const GROUPS: Record<string, string[]> = {
  'ada@example.com': ['finance'],
  'ben@example.com': ['finance', 'unknown group'],
  'eve@example.com': ['guests'],
};

describe.each(['', '/tallyhook'])(
  'People sign in with their account, under the path %j',
  (path) => {
    const browser = useBrowser();
    const issuer = createServer();
    let world: World;
    let daemon: DaemonProcess;

    beforeAll(async () => {
      world = await createWorld();
      const port = await freePort();
      const redirect = `http://127.0.0.1:${port}${path}/sign-in/callback`;
      const url = `http://127.0.0.1:${await listen(issuer)}`;
      issuer.on('request', providerAt(url, redirect).callback());
      daemon = await startDaemon(world, {
        http: { port, base_path: path },
        console: {
          oidc: {
            issuer: url,
            client_id: 'console',
            redirect_url: redirect,
            groups: { finance: ['read', 'decide'] },
          },
        },
      });
    });
    afterAll(async () => {
      await daemon?.kill();
      await closeServer(issuer);
      await world?.close();
    });

    /** A person at the form of the provider, from the page that was asked for. */
    async function signInAs(email: string, to: string) {
      const context = await browser?.().newContext();
      const page = await context?.newPage();
      if (!page) throw new Error('no browser');
      await page.goto(`${daemon.url}${to}`);
      await page.getByRole('link', { name: /^Sign in with 127/ }).click();
      await page.fill('input[name=login]', email);
      await page.fill('input[name=password]', 'any');
      await page.getByRole('button', { name: 'Sign-in' }).click();
      await page.getByRole('button', { name: 'Continue' }).click();
      return page;
    }

    it('and come back to the page they wanted, as an owner of their own', async () => {
      const app = makeApp(() => daemon.url);
      for (const email of ['ada@example.com', 'ben@example.com']) {
        const page = await signInAs(email, '/drifts?state=open');
        await page.getByRole('heading', { level: 1, name: 'Drifts' }).waitFor();
        expect(page.url()).toBe(`${daemon.url}/drifts?state=open`);
        expect(await page.content()).not.toContain('thk_');
        await page.reload();
        await page.getByRole('heading', { level: 1, name: 'Drifts' }).waitFor();
      }
      const { data } = (await app.call('GET', '/api/keys')).json;
      const made = data.filter(({ name }: { name: string }) => name === 'console');
      expect(made.map(({ owner }: { owner: string }) => owner)).toEqual([
        'ada@example.com',
        'ben@example.com',
      ]);
      for (const key of made) {
        expect(key.scopes).toEqual(['read', 'decide']);
        const lasts = Date.parse(key.expires_at) - Date.parse(key.created_at);
        expect(Math.round(lasts / 1_000)).toBe(12 * 3_600);
      }
      const audit = (await app.call('GET', '/api/audit')).json.data;
      expect(audit.map(({ owner }: { owner: string }) => owner)).toContain('ben@example.com');
    });

    it('and are told why when none of their groups has a scope', async () => {
      const page = await signInAs('eve@example.com', '/');
      await page.getByText('None of your groups (groups) may use this console.').waitFor();
      expect(new URL(page.url()).pathname).toBe(`${path}/`);
    });

    it.each([
      ['without having begun', ''],
      ['with an invented cookie', 'tallyhook_sign_in=AAAA'],
    ])('but nobody comes back %s', async (_, cookie) => {
      const answer = await fetch(`${daemon.url}/sign-in/callback?code=x&state=y`, {
        headers: { cookie },
      });
      expect(answer.status).toBe(403);
      expect(await answer.text()).toContain('The sign-in took too long. Try again.');
    });

    it.each(['//evil.example', '/\\evil.example', 'https://evil.example', '/a b'])(
      'and are never sent to %s',
      async (to) => {
        const answer = await fetch(`${daemon.url}/sign-in?to=${encodeURIComponent(to)}`, {
          redirect: 'manual',
        });
        expect(answer.status).toBe(302);
        expect(answer.headers.get('location')).not.toContain('evil');
        expect(answer.headers.get('set-cookie')).toContain('HttpOnly; SameSite=Lax');
        expect(answer.headers.get('set-cookie')).toContain(`Path=${path}/sign-in;`);
      },
    );
  },
);

describe('The claims of an account name an owner and scopes', () => {
  const rule: SignInRule = {
    requested: ['openid'],
    ownerClaim: 'email',
    groupsClaim: 'groups',
    groups: { finance: ['read', 'decide'], ops: ['read', 'manage'] },
  };
  const ada = { email: 'ada@example.com', email_verified: true };

  it.each([
    [{ ...ada, groups: ['finance'] }, {}, 'ada@example.com', ['read', 'decide']],
    [
      { ...ada, groups: ['ops', 'finance', 7] },
      {},
      'ada@example.com',
      ['read', 'manage', 'decide'],
    ],
    [{ ...ada, groups: 'ops' }, {}, 'ada@example.com', ['read', 'manage']],
    [{ sub: 'u1', groups: ['ops'] }, { ownerClaim: 'sub' }, 'u1', ['read', 'manage']],
    [ada, { groups: { '*': ['read' as const] } }, 'ada@example.com', ['read']],
  ])('%j with %j is %s with %j', (claims, changed, owner, scopes) => {
    expect(personOf(claims, { ...rule, ...changed })).toEqual({ owner, scopes });
  });

  it.each([
    [{ ...ada, groups: ['guests'] }, 'None of your groups'],
    [{ ...ada, groups: ['__proto__', 'constructor'] }, 'None of your groups'],
    [{ ...ada, email_verified: false, groups: ['ops'] }, 'is not verified'],
    [{ email: 'ada@example.com', groups: ['ops'] }, 'is not verified'],
    [{ groups: ['ops'] }, 'has no email'],
    [{ ...ada, email: ' ', groups: ['ops'] }, 'has no email'],
    [{ ...ada, email: 7, groups: ['ops'] }, 'has no email'],
  ])('%j is refused: %s', (claims, why) => {
    expect(() => personOf(claims, rule)).toThrow(expect.objectContaining({ code: 'forbidden' }));
    expect(() => personOf(claims, rule)).toThrow(why);
  });
});

/** A provider whose login form accepts every account; its name is the e-mail address. */
function providerAt(url: string, redirect: string): Provider {
  return new Provider(url, {
    clients: [
      {
        client_id: 'console',
        token_endpoint_auth_method: 'none',
        redirect_uris: [redirect],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: id, email_verified: true, groups: GROUPS[id] }),
    }),
  });
}
