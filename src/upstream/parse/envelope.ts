/**
 * What the body of an answer says: the success envelope, and the three error shapes of the
 * interface (sections 7.1 to 7.3) folded into one. Pure. A status may be a number or a text, and
 * the HTTP status is not looked at here.
 */
import { wholeOf } from '../../kernel/amounts.ts';
import { type Json, tryParseJson } from '../../kernel/json.ts';
import { maskSecrets } from '../../kernel/log.ts';
import type { Answer } from '../types.ts';

export type Said =
  | { shape: 'success'; data: Json }
  | {
      shape: 'error';
      status: number;
      /** The service's own code or detail; else the status as text. */
      code: string;
      message: string;
    }
  /** JSON that is neither. */
  | { shape: 'json'; value: Json }
  | { shape: 'unreadable' };

/** More of a message is not kept, in characters. */
const MESSAGE_MAX = 1000;

/** Reads a complete body. */
export function readEnvelope(body: Uint8Array): Said {
  const value = tryParseJson(Buffer.from(body.buffer, body.byteOffset, body.length).toString());
  if (value === undefined) return { shape: 'unreadable' };
  const status = isRecord(value) ? wholeOf(value.status) : undefined;
  if (!isRecord(value) || status === undefined) return { shape: 'json', value };
  const { data, error } = value;
  if (status === 200n && data !== undefined && data !== null && !error)
    return { shape: 'success', data };
  if (!error && status < 400n) return { shape: 'json', value };
  return { shape: 'error', status: Number(status), ...complaintOf(value, String(status)) };
}

/** True when an answer says in words that the service is under maintenance. */
export function saysMaintenance(answer: Answer, said: Said): boolean {
  const text = Buffer.from(answer.body).toString();
  // A proxy's page for any trouble blames "maintenance downtime or capacity problems", too.
  return said.shape === 'unreadable'
    ? /under\s+maintenance/i.test(text)
    : /maintenance/i.test(text);
}

/** The value of a header, or undefined; of several the first. */
export function headerOf(answer: Answer, name: string): string | undefined {
  return answer.headers.find(([key]) => key.toLowerCase() === name)?.[1];
}

function complaintOf(
  { error, message }: { [key: string]: Json },
  status: string,
): { code: string; message: string } {
  if (Array.isArray(error)) return { code: status, message: bounded(error.map(lineOf).join('; ')) };
  if (!error || !isRecord(error)) {
    const words = typeof error === 'string' ? error : message;
    return { code: status, message: bounded(typeof words === 'string' ? words : '') };
  }
  const own = wholeOf(error.code) ?? (typeof error.code === 'string' ? error.code : undefined);
  const detail = typeof error.detail === 'string' ? error.detail : undefined;
  const words = typeof error.message === 'string' ? error.message : (detail ?? '');
  const named = detail && /^[a-z_]{1,64}$/.test(detail) ? detail : undefined;
  return { code: bounded(named ?? String(own ?? status)).slice(0, 64), message: bounded(words) };
}

/** One complaint of a list (section 7.1), with its field. */
function lineOf(complaint: Json): string {
  if (!isRecord(complaint)) return typeof complaint === 'string' ? complaint : '';
  const { message, field } = complaint;
  const words = typeof message === 'string' ? message : '';
  return typeof field === 'string' && field ? `${field}: ${words}` : words;
}

function bounded(text: string): string {
  return maskSecrets(text.slice(0, MESSAGE_MAX));
}

function isRecord(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
