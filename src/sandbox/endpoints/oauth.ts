/**
 * The authorization endpoints (section 4.4): the three grants, the token check, and the login of
 * the authorization code flow. Secrets are compared in constant time.
 */
import { timingSafeEqual } from 'node:crypto';
import { sha256Hex } from '../../kernel/json.ts';
import { findGrant, isExpired, issue, markUsed } from '../state/grants.ts';
import type { Grant, Member } from '../state/records.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, escapeHtml, formOf, htmlAnswer, jsonAnswer } from './call.ts';
import { oauthRefusal, oauthStatus } from './errors.ts';

/** POST /v1/oauth/token */
export function token(world: World, call: Call): Answer {
  checkBasic(world, call);
  const form = formOf(call);
  switch (form.get('grant_type')) {
    case undefined:
    case '':
      throw oauthRefusal('invalid_request');
    case 'client_credentials':
      return clientToken(world);
    case 'authorization_code':
      return tokenForCode(world, required(form, 'code'), required(form, 'redirect_uri'));
    case 'refresh_token':
      return refreshedToken(world, required(form, 'refresh_token'));
    default:
      throw oauthRefusal('invalid_grant');
  }
}

/** GET /v1/oauth/check_token */
export function checkToken(world: World, call: Call): Answer {
  const switches = world.switches();
  if (switches.check_needs_basic) checkBasic(world, call);
  const secret = call.query.get('token');
  if (!secret) throw oauthRefusal('invalid_request');
  const grant = findGrant(world, 'access', secret);
  if (!grant) throw oauthRefusal('invalid_token');
  const active = !isExpired(world, grant);
  if (!active && switches.check_expired === 'invalid_token') throw oauthRefusal('invalid_token');
  return tokenAnswer(world, {
    grant_type: grant.grant_type,
    ...memberFields(world, memberOf(world, grant)),
    active,
    app_no: world.app.app_no,
    exp: Math.floor(grant.expires_at / 1000),
    client_id: world.app.client_id,
  });
}

/** GET /v1/oauth/authorize: the login page. */
export function authorize(world: World, call: Call): Answer {
  const request = authorizeRequest(world, new Map(call.query));
  return htmlAnswer(loginPage(world.app.name, request, [...world.members.values()]));
}

/** POST /v1/oauth/authorize: logs a member in and redirects with a code. */
export function login(world: World, call: Call): Answer {
  const form = formOf(call);
  const request = authorizeRequest(world, form);
  const member = world.members.get(required(form, 'member_no'));
  if (!member) throw oauthStatus(401);
  const { redirect_uri, state } = request;
  const { member_no } = member;
  const grant = {
    kind: 'code',
    grant_type: 'authorization_code',
    member_no,
    redirect_uri,
  } as const;
  const target = new URL(redirect_uri);
  target.searchParams.set('code', issue(world, grant, world.switches().code_lifetime_s));
  if (state !== undefined) target.searchParams.set('state', state);
  return { status: 302, headers: { location: target.href, 'cache-control': 'no-store' }, body: '' };
}

interface AuthorizeRequest {
  client_id: string;
  redirect_uri: string;
  state: string | undefined;
}

function authorizeRequest(world: World, fields: ReadonlyMap<string, string>): AuthorizeRequest {
  const response_type = required(fields, 'response_type');
  const client_id = required(fields, 'client_id');
  const redirect_uri = required(fields, 'redirect_uri');
  if (client_id !== world.app.client_id) throw oauthRefusal('invalid_request');
  if (response_type !== 'code') throw oauthRefusal('unsupported_response_type');
  checkRedirect(world, redirect_uri);
  return { client_id, redirect_uri, state: fields.get('state') };
}

function clientToken(world: World): Answer {
  return tokenAnswer(world, accessFields(world, 'client_credentials', null));
}

/** A code is valid once, for its own redirect URI, and until it expires. @throws Refusal */
function tokenForCode(world: World, code: string, redirect_uri: string): Answer {
  checkRedirect(world, redirect_uri);
  const grant = findGrant(world, 'code', code);
  if (!grant) throw oauthRefusal('unauthorized_client');
  if (grant.used || isExpired(world, grant)) throw oauthRefusal('invalid_grant');
  if (grant.redirect_uri !== redirect_uri) throw oauthRefusal('redirect_uri_mismatch');
  markUsed(world, code);
  return userToken(world, 'authorization_code', memberOf(world, grant), newRefresh(world, grant));
}

function refreshedToken(world: World, secret: string): Answer {
  const grant = findGrant(world, 'refresh', secret);
  if (!grant || grant.used || isExpired(world, grant)) throw oauthRefusal('invalid_grant');
  const rotates = world.switches().refresh_rotates;
  if (rotates) markUsed(world, secret);
  const next = rotates ? newRefresh(world, grant) : secret;
  return userToken(world, 'refresh_token', memberOf(world, grant), next);
}

function newRefresh(world: World, { member_no }: Grant): string {
  const grant = { kind: 'refresh', grant_type: 'refresh_token', member_no } as const;
  return issue(world, { ...grant, redirect_uri: null }, world.switches().refresh_lifetime_s);
}

function userToken(
  world: World,
  grantType: string,
  member: Member | undefined,
  refresh_token: string,
): Answer {
  if (!member) throw oauthRefusal('invalid_grant');
  return tokenAnswer(world, {
    ...accessFields(world, grantType, member.member_no),
    refresh_token,
    ...memberFields(world, member),
  });
}

function accessFields(world: World, grant_type: string, member_no: bigint | null) {
  const { access_lifetime_s, expires_in_unit } = world.switches();
  const grant = { kind: 'access', grant_type, member_no, redirect_uri: null } as const;
  const perUnit = { s: 1, ms: 0.001, min: 60, h: 3600 }[expires_in_unit];
  return {
    access_token: issue(world, grant, access_lifetime_s),
    token_type: 'bearer',
    expires_in: Math.floor(access_lifetime_s / perUnit),
    app_no: world.app.app_no,
  };
}

/** The member's fields of a token record; none for a client token. */
function memberFields(world: World, member: Member | undefined) {
  if (!member) return {};
  const { member_no, nickname } = member;
  return { scope: world.switches().scope, member_no, nickname };
}

function memberOf(world: World, { member_no }: Grant): Member | undefined {
  return member_no === null ? undefined : world.members.get(member_no.toString());
}

function tokenAnswer(world: World, record: Record<string, unknown>): Answer {
  const body = world.switches().token_envelope ? { status: 200, data: record } : record;
  return jsonAnswer(200, body, { 'cache-control': 'no-store' });
}

function required(fields: ReadonlyMap<string, string>, name: string): string {
  const value = fields.get(name);
  if (!value) throw oauthRefusal('invalid_request');
  return value;
}

function checkRedirect(world: World, uri: string): void {
  if (!world.settings().redirect_uris.includes(uri)) throw oauthRefusal('redirect_uri_mismatch');
}

/** @throws Refusal 401 unless the header carries this app's id and secret */
function checkBasic({ app }: World, call: Call): void {
  const encoded = /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(call.authorization ?? '')?.[1] ?? '';
  const presented = sha256Hex(Buffer.from(encoded, 'base64'));
  const expected = sha256Hex(`${app.client_id}:${app.client_secret}`);
  if (!timingSafeEqual(Buffer.from(presented), Buffer.from(expected))) throw oauthStatus(401);
}

const STYLE = `:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:10vh auto;padding:0 1rem}
button{font:inherit;display:block;width:100%;margin:.5rem 0;padding:.7rem 1rem;text-align:left;
border:1px solid;border-radius:.5rem;cursor:pointer}
small{overflow-wrap:anywhere}`;

/** The login page: app, redirect URI, and a button for each member. All values are escaped. */
function loginPage(appName: string, request: AuthorizeRequest, members: readonly Member[]): string {
  const hidden = Object.entries({ response_type: 'code', ...request })
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value ?? '')}">`,
    )
    .join('\n');
  const buttons = members
    .map(
      ({ member_no, nickname }) =>
        `<button name="member_no" value="${member_no}">` +
        `Log in as ${escapeHtml(nickname)} (member ${member_no})</button>`,
    )
    .join('\n');
  const app = escapeHtml(appName);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Log in to ${app}</title><style>${STYLE}</style></head>
<body><main>
<h1>Log in to ${app}</h1>
<p>${app} asks to act for you. You are sent back to<br>
<small>${escapeHtml(request.redirect_uri)}</small></p>
<form method="post" action="/v1/oauth/authorize">
${hidden}
${buttons}
</form>
<p><small>A sandbox: its members need no password.</small></p>
</main></body>
</html>
`;
}
