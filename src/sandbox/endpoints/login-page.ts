/** The login page of the authorization flow: app, redirect URI, and a button for each member. */
import type { Member } from '../state/records.ts';
import { escapeHtml } from './call.ts';

export interface AuthorizeRequest {
  client_id: string;
  redirect_uri: string;
  state: string | undefined;
}

const STYLE = `:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:10vh auto;padding:0 1rem}
button{font:inherit;display:block;width:100%;margin:.5rem 0;padding:.7rem 1rem;text-align:left;
border:1px solid;border-radius:.5rem;cursor:pointer}
small{overflow-wrap:anywhere}`;

/** Renders the page; every value from the request is escaped. */
export function loginPage(
  appName: string,
  request: AuthorizeRequest,
  members: readonly Member[],
): string {
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
