/** Requests and responses as plain values: an endpoint is a function from one to the other. */
import type { Instant } from '../../kernel/clock.ts';
import { jsonText } from '../../kernel/json.ts';

/** The three error shapes: sections 7.1, 7.2 and 7.3. */
export type Family = 'nft' | 'account' | 'oauth';

export interface Call {
  /** Name of the endpoint, or `absent`. */
  endpoint: string;
  family: Family;
  method: string;
  /** The path as received. */
  path: string;
  params: Record<string, string>;
  query: URLSearchParams;
  authorization: string | undefined;
  body: string;
  /** Age of the state that reads show, in milliseconds. */
  ageMs: number;
  /** Rows by which the pages of a list are displaced. */
  shift: number;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };

/** A JSON response; bigints are written exactly. */
export function jsonAnswer(status: number, body: unknown, headers = {}): Answer {
  return { status, headers: { ...JSON_TYPE, ...headers }, body: jsonText(body) };
}

export function success(data: unknown): Answer {
  return jsonAnswer(200, { status: 200, data });
}

/** `success` for data that is JSON text already. */
export function successText(data: string): Answer {
  return { status: 200, headers: JSON_TYPE, body: `{"status":200,"data":${data}}` };
}

/** An HTML page. @param script a content security policy source for its one script */
export function htmlAnswer(body: string, script?: string): Answer {
  const scripts = script ? `; script-src ${script}; connect-src 'self'` : '';
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'${scripts}`,
    'cache-control': 'no-store',
  };
  return { status: 200, headers, body };
}

/** The fields of a form body; the last of a repeated field counts. */
export function formOf(call: Call): Map<string, string> {
  return new Map(new URLSearchParams(call.body));
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * A timestamp of the service: `YYYY-MM-DD HH:MM:SS` in a time zone that it does not name.
 * @param timeZone an IANA name such as `UTC` or `Asia/Seoul`
 */
export function timestampText(at: Instant, timeZone: string): string {
  if (timeZone === 'UTC') return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
  let format = formats.get(timeZone);
  if (!format) {
    // The Swedish locale writes ISO dates: 2026-07-02 05:00:00.
    format = new Intl.DateTimeFormat('sv-SE', {
      timeZone,
      dateStyle: 'short',
      timeStyle: 'medium',
    });
    formats.set(timeZone, format);
  }
  return format.format(at);
}
