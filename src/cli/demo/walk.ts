/** The context and the assertions of the demo's steps. */
import { request } from 'undici';
import type { RunningDaemon } from '../../daemon/daemon.ts';
import { type Json, jsonText, parseJson } from '../../kernel/json.ts';
import type { DemoReceiver, Received } from './receiver.ts';
import type { DemoService } from './service.ts';

/** The longest wait of a step. */
export const TIMEOUT_MS = 60_000;

export interface Walk {
  service: DemoService;
  receiver: DemoReceiver;
  daemon: RunningDaemon;
  adminKey: string;
  /** Results for later steps. */
  memory: { lost?: string; resolution?: string };
}

/** Sends one request to the daemon with the admin key. */
export async function call(
  walk: Walk,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: Json | string,
): Promise<{
  status: number;
  body: Record<string, Json>;
  operation: string | undefined;
  outcome: string | undefined;
}> {
  const form = typeof body === 'string';
  const answer = await request(`${walk.daemon.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${walk.adminKey}`,
      ...(body === undefined
        ? {}
        : { 'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json' }),
    },
    body: body === undefined ? null : form ? body : jsonText(body),
    headersTimeout: TIMEOUT_MS,
  });
  const headerOf = (name: string) => {
    const value = answer.headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    body: (text ? parseJson(text) : {}) as Record<string, Json>,
    operation: headerOf('tallyhook-operation'),
    outcome: headerOf('tallyhook-outcome'),
  };
}

/** @throws Error with the message when the condition is false */
export function expect(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** The first matching webhook. @throws Error when none arrives in time */
export async function webhook(
  { receiver }: Walk,
  description: string,
  matches: (received: Received) => boolean,
): Promise<Received> {
  const found = await receiver.waitFor(matches, TIMEOUT_MS);
  expect(found, `no webhook arrived within ${TIMEOUT_MS / 1000} s: ${description}`);
  return found;
}

/** The webhook of that type about that operation. */
export function about(walk: Walk, type: string, operation: string): Promise<Received> {
  return webhook(
    walk,
    `${type} of ${operation}`,
    (r) => r.type === type && r.data.operation_id === operation,
  );
}

export function sameAddress(a: unknown, b: string): boolean {
  return typeof a === 'string' && a.toLowerCase() === b.toLowerCase();
}
