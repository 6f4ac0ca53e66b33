/** A member of the sandbox who logs in, as an app's own server would do it for him. */
import { request } from 'undici';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { CLIENT } from './daemon.ts';

const REDIRECT = 'https://app.example/back';

/** The access token of a member: the login page's form, and the exchange of its code. */
export async function userTokenOf(
  sandbox: Sandbox,
  memberNo: number,
  client = CLIENT,
): Promise<string> {
  sandbox.control.addRedirectUri(REDIRECT);
  const sent = await form(sandbox, client, '/v1/oauth/authorize', {
    response_type: 'code',
    client_id: client.clientId,
    redirect_uri: REDIRECT,
    member_no: String(memberNo),
  });
  const code = new URL(String(sent.headers.location)).searchParams.get('code') ?? '';
  await sent.body.dump();
  const answer = await form(sandbox, client, '/v1/oauth/token', {
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
  });
  const { access_token: token } = (await answer.body.json()) as { access_token: string };
  return token;
}

function form(
  { url }: Sandbox,
  { clientId, clientSecret }: typeof CLIENT,
  path: string,
  fields: Record<string, string>,
) {
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
  return request(`${url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${basic}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(fields).toString(),
  });
}
