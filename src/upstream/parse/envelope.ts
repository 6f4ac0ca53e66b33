/**
 * Parses the body of an answer: the success envelope, or one of the three error shapes of the
 * interface (sections 7.1 to 7.3), as one. Pure. The HTTP status plays no part here.
 */
import { wholeOf } from '../../kernel/amounts.ts';
import { isObject, type Json, tryParseJson } from '../../kernel/json.ts';
import { maskSecrets } from '../../kernel/telemetry/log.ts';
import type { Answer } from '../http/exchange.ts';

export type Envelope =
  | { shape: 'success'; data: Json }
  | {
      shape: 'error';
      status: number;
      /** The service's own code or detail; else the status as text. */
      code: string;
      message: string;
      /** The list of section 7.1; empty in every other shape. */
      items: readonly ErrorItem[];
    }
  /** JSON of another shape. */
  | { shape: 'json'; value: Json }
  | { shape: 'unreadable' };

/** What section 7.1 says of one parameter; a missing text is empty. */
export interface ErrorItem {
  message: string;
  field: string;
  validation: string;
}

/** The longest message that is kept, in characters. */
const MESSAGE_MAX = 1000;

/** Parses a complete body. The status in it may be a number or text. */
export function parseEnvelope(body: Uint8Array): Envelope {
  const value = tryParseJson(Buffer.from(body.buffer, body.byteOffset, body.length).toString());
  if (value === undefined) return { shape: 'unreadable' };
  const status = isObject(value) ? wholeOf(value.status) : undefined;
  if (!isObject(value) || status === undefined) return { shape: 'json', value };
  const { data, error } = value;
  if (status === 200n && data !== undefined && data !== null && !error)
    return { shape: 'success', data };
  if (!error && status < 400n) return { shape: 'json', value };
  const items = Array.isArray(error) ? error.flatMap(itemsOf) : [];
  return { shape: 'error', status: Number(status), items, ...errorOf(value, String(status)) };
}

/** The data of the success envelope, or the bare JSON with which the authorization host answers. */
export function recordIn(envelope: Envelope): Json | undefined {
  if (envelope.shape === 'success') return envelope.data;
  return envelope.shape === 'json' ? envelope.value : undefined;
}

/** True when an answer mentions that the service is under maintenance. */
export function mentionsMaintenance(answer: Answer, envelope: Envelope): boolean {
  const text = Buffer.from(answer.body).toString();
  // A proxy's error page may blame "maintenance downtime or capacity problems" for any failure.
  return envelope.shape === 'unreadable'
    ? /under\s+maintenance/i.test(text)
    : /maintenance/i.test(text);
}

/** The first value of a header, or undefined. */
export function headerOf(answer: Answer, name: string): string | undefined {
  return answer.headers.find(([key]) => key.toLowerCase() === name)?.[1];
}

function errorOf(
  { error, message }: { [key: string]: Json },
  status: string,
): { code: string; message: string } {
  if (Array.isArray(error))
    return { code: status, message: bounded(error.map(itemText).join('; ')) };
  if (!error || !isObject(error)) {
    const text = typeof error === 'string' ? error : message;
    return { code: status, message: bounded(typeof text === 'string' ? text : '') };
  }
  const own = wholeOf(error.code) ?? (typeof error.code === 'string' ? error.code : undefined);
  const detail = typeof error.detail === 'string' ? error.detail : undefined;
  const text = typeof error.message === 'string' ? error.message : (detail ?? '');
  const named = detail && /^[a-z_]{1,64}$/.test(detail) ? detail : undefined;
  return { code: bounded(named ?? String(own ?? status)).slice(0, 64), message: bounded(text) };
}

function itemsOf(item: Json): ErrorItem[] {
  if (!isObject(item)) return [];
  const text = (value: Json | undefined) => (typeof value === 'string' ? value : '');
  const { message, field, validation } = item;
  return [{ message: text(message), field: text(field), validation: text(validation) }];
}

/** One item of an error list, with its field. */
function itemText(item: Json): string {
  const { message, field } = itemsOf(item)[0] ?? { message: '', field: '' };
  if (typeof item === 'string') return item;
  return field ? `${field}: ${message}` : message;
}

function bounded(text: string): string {
  return maskSecrets(text.slice(0, MESSAGE_MAX));
}
