/**
 * The authorization code flow of a browser and a developer's server: reads the login page, submits
 * its form and exchanges the code in the redirect.
 */

import { ensure, NotChecked } from '../statement.ts';
import type { Reply } from './reply.ts';
import { clientOf, type Service } from './service.ts';

export interface UserTokens {
  access: string;
  refresh: string | undefined;
}

/** A registered redirect URI. @throws NotChecked when none is known */
export async function redirectUri(service: Service): Promise<string> {
  const { redirectUri: named } = service.options;
  if (named !== undefined) return named;
  if (!service.controlled) throw new NotChecked('needs --redirect-uri or --control');
  const [first] = (await service.control.state()).redirect_uris;
  if (first === undefined) throw new NotChecked('no redirect URI is registered');
  return first;
}

/** The query of a valid authorize request. */
export async function authorizeQuery(service: Service, state?: string) {
  return {
    response_type: 'code',
    client_id: clientOf(service).id,
    redirect_uri: await redirectUri(service),
    ...(state === undefined ? {} : { state }),
  };
}

export function authorize(service: Service, query: Record<string, string>): Promise<Reply> {
  return service.send('auth', 'GET', '/v1/oauth/authorize', { as: 'anonymous', query });
}

/** A new member of the sandbox, without a wallet. */
export function ownMember(service: Service): Promise<string> {
  return service.once('member', () => service.control.addMember('Contract'));
}

/** Submits the login page; the response is the redirect. */
export async function submitLogin(
  service: Service,
  state?: string,
  member?: string,
): Promise<Reply> {
  const member_no = member ?? (await ownMember(service));
  const page = await authorize(service, await authorizeQuery(service, state));
  const action = /<form[^>]*\baction="([^"]*)"/.exec(page.text)?.[1];
  ensure(action !== undefined, `authorize should show a login form; it answered ${page.summary}`);
  const hidden = [...page.text.matchAll(/<input\b[^>]*>/g)].map(
    ([tag]) => [attribute(tag, 'name'), attribute(tag, 'value')] as const,
  );
  const path = new URL(unescaped(action), 'http://host.invalid/v1/oauth/authorize').pathname;
  const form = { ...Object.fromEntries(hidden), member_no };
  return service.send('auth', 'POST', path, { as: 'anonymous', form });
}

/** The query parameters of the redirect. */
export async function redirectParams(service: Service, state?: string): Promise<URLSearchParams> {
  return paramsOf(await submitLogin(service, state));
}

function paramsOf(reply: Reply): URLSearchParams {
  return locationOf(reply).searchParams;
}

/** @throws NotHeld when the response is not a redirect */
export function locationOf({ status, headers, summary }: Reply): URL {
  const { location } = headers;
  ensure(
    status >= 300 && status < 400 && typeof location === 'string' && URL.canParse(location),
    `the login should be answered by a redirect with a location; it was answered ${summary}`,
  );
  return new URL(location);
}

/** Logs in and exchanges the code. */
export async function codeGrant(service: Service, member?: string): Promise<Reply> {
  const code = paramsOf(await submitLogin(service, undefined, member)).get('code') ?? '';
  const form = { grant_type: 'authorization_code', code, redirect_uri: await redirectUri(service) };
  return service.send('auth', 'POST', '/v1/oauth/token', { form });
}

/** Tokens of this run's member. */
export async function logIn(service: Service, member?: string): Promise<UserTokens> {
  const { record } = await codeGrant(service, member);
  return { access: record.text('access_token'), refresh: record.text('refresh_token') };
}

function attribute(tag: string, name: string): string {
  return unescaped(new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1] ?? '');
}

function unescaped(html: string): string {
  return html
    .replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}
