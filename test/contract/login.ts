/**
 * The authorization code flow as an end user's browser and a developer's server walk it: the login
 * page is read, its form is sent, the redirect is not followed but looked at.
 */
import type { Reply } from './reply.ts';
import { clientOf, type Service } from './service.ts';
import { insist, NotChecked } from './statement.ts';

export interface UserTokens {
  access: string;
  refresh: string | undefined;
}

/** A registered address. @throws NotChecked when none is known */
export async function redirectUri(service: Service): Promise<string> {
  const { redirectUri: named } = service.options;
  if (named !== undefined) return named;
  if (!service.controlled) throw new NotChecked('needs --redirect-uri or --control');
  const [first] = (await service.control.state()).redirect_uris;
  if (first === undefined) throw new NotChecked('no redirect URI is registered');
  return first;
}

/** The query of a proper authorize request. */
export async function authorizeQuery(service: Service, state?: string) {
  return {
    response_type: 'code',
    client_id: clientOf(service).id,
    redirect_uri: await redirectUri(service),
    ...(state === undefined ? {} : { state }),
  };
}

/** GET authorize, as a browser without credentials. */
export function authorize(service: Service, query: Record<string, string>): Promise<Reply> {
  return service.send('auth', 'GET', '/v1/oauth/authorize', { as: 'nobody', query });
}

/** The member of this run; a sandbox gets one of its own, who has no wallet yet. */
export function ownMember(service: Service): Promise<string> {
  return service.once('member', () => service.control.addMember('Contract'));
}

/** What the browser gets for logging in on the page: the redirect. */
export async function submitLogin(
  service: Service,
  state?: string,
  member?: string,
): Promise<Reply> {
  const member_no = member ?? (await ownMember(service));
  const page = await authorize(service, await authorizeQuery(service, state));
  const action = /<form[^>]*\baction="([^"]*)"/.exec(page.text)?.[1];
  insist(action !== undefined, `authorize should show a login form; it answered ${page.told}`);
  const hidden = [...page.text.matchAll(/<input\b[^>]*>/g)].map(
    ([tag]) => [attribute(tag, 'name'), attribute(tag, 'value')] as const,
  );
  const path = new URL(unescaped(action), 'http://host.invalid/v1/oauth/authorize').pathname;
  const form = { ...Object.fromEntries(hidden), member_no };
  return service.send('auth', 'POST', path, { as: 'nobody', form });
}

/** The parameters that come back to the registered address. */
export async function comeBack(service: Service, state?: string): Promise<URLSearchParams> {
  return paramsOf(await submitLogin(service, state));
}

/** @throws NotHeld when the answer is no redirect */
export function paramsOf(reply: Reply): URLSearchParams {
  return locationOf(reply).searchParams;
}

/** @throws NotHeld when the answer is no redirect */
export function locationOf({ status, headers, told }: Reply): URL {
  const { location } = headers;
  insist(
    status >= 300 && status < 400 && typeof location === 'string' && URL.canParse(location),
    `the login should be answered by a redirect with a location; it was answered ${told}`,
  );
  return new URL(location);
}

/** Exchanges a code that is obtained for it. */
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
