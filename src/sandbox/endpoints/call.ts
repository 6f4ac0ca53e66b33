/**
 * A request and an answer as plain values, so that every rule of the service is a function from
 * one to the other and can be cut, delayed or repeated without a connection.
 */
import { jsonText } from '../../kernel/json.ts';

/** Which of the three error shapes an endpoint speaks. */
export type Family = 'nft' | 'account' | 'oauth';

export interface Call {
  /** Name of the endpoint, or `absent`. */
  endpoint: string;
  family: Family;
  method: string;
  /** The path as it was sent. */
  path: string;
  params: Record<string, string>;
  query: URLSearchParams;
  authorization: string | undefined;
  body: string;
  /** How old the state is that reads answer from, in milliseconds. */
  ageMs: number;
  /** By how many rows the pages of a list are displaced. */
  shift: number;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };

/** An answer with a JSON body; bigints are written digit by digit. */
export function jsonAnswer(status: number, body: unknown, headers = {}): Answer {
  return { status, headers: { ...JSON_TYPE, ...headers }, body: jsonText(body) };
}

/** The success envelope of the service. */
export function success(data: unknown): Answer {
  return jsonAnswer(200, { status: 200, data });
}

/** The success envelope around data that is JSON text already. */
export function successText(data: string): Answer {
  return { status: 200, headers: JSON_TYPE, body: `{"status":200,"data":${data}}` };
}

/** A page for people. @param script the only script that it may run, as a source of a policy */
export function htmlAnswer(status: number, body: string, script?: string): Answer {
  const scripts = script ? `; script-src ${script}; connect-src 'self'` : '';
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'${scripts}`,
    'cache-control': 'no-store',
  };
  return { status, headers, body };
}

/** The fields of a form body; of a repeated field the last one counts. */
export function formOf(call: Call): Map<string, string> {
  return new Map(new URLSearchParams(call.body));
}

/** Text that may stand in HTML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
